// A promise to the compiler about the loop behind it: its iterations do not depend on each other,
// though their pointers may be equal (an op in place). Without it a loop that reads x[i] and writes
// y[i] is vectorised only behind a check that x and y do not overlap, which fails exactly in place.
#ifndef MERGEKERNEL_KERNELS_MATH_VECTORIZE_H_
#define MERGEKERNEL_KERNELS_MATH_VECTORIZE_H_

// clang's counterpart warns wherever it then does not vectorise; packs are built with g++.
#if defined(__GNUC__) && !defined(__clang__)
#define MK_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define MK_INDEPENDENT_ITERATIONS
#endif

#endif  // MERGEKERNEL_KERNELS_MATH_VECTORIZE_H_
