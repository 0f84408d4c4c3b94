// The vector type F32 of the instruction set that this unit is compiled for, in its own namespace
// mk::simd::<MK_SIMD_ISA>. Only units built by mk_simd_library (kernels/op.bzl) include it.
//
// The vocabulary, the same for all:
//
//   F32::kLanes             floats in one
//   F32::Set(x)             x in every lane
//   F32::Load(p)            kLanes floats, of any alignment
//   F32::LoadFirst(p, n)    the first n, 0 <= n <= kLanes; 0 in the others; reads no further
//   v.Store(p), v.StoreFirst(p, n)
//   a + b, a - b, a * b, a / b
//   MulAdd(a, b, c)         a b + c, fused where the set has it
//   NegMulAdd(a, b, c)      c - a b
//   Max(a, b), Min(a, b)    REQUIRES that a holds no NaN; a NaN in b comes through
//   Abs(v), NegAbs(v)       |v|, -|v|
//   SelectNegative(v, a, b) a where v < 0, else b (also where v is NaN)
//   ToExponent(v)           the low 9 bits of each lane, shifted to where a float has its sign and
//                           exponent
//   Sum(v)                  of the lanes, in a fixed order
#ifndef MERGEKERNEL_KERNELS_SIMD_VEC_H_
#define MERGEKERNEL_KERNELS_SIMD_VEC_H_

#define MK_SIMD_INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__)
#include "kernels/simd/vec_avx512.h"
#elif defined(__AVX2__)
#include "kernels/simd/vec_avx2.h"
#elif defined(__x86_64__)
#include "kernels/simd/vec_sse2.h"
#elif defined(__aarch64__)
#include "kernels/simd/vec_neon.h"
#else
#error "kernels/simd has no vectors for this architecture"
#endif

#endif  // MERGEKERNEL_KERNELS_SIMD_VEC_H_
