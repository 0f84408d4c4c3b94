// The loop of Multiply, compiled for each instruction set.
#ifndef MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_SIMD_H_
#define MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_SIMD_H_

#include "kernels/pointwise/multiply_params.h"
#include "kernels/simd/dispatch.h"

namespace mk::simd {

// Elements [begin, end). REQUIRES CheckMultiply(p) is OK.
MK_SIMD_DECLARE(void MultiplyRange(const MultiplyParams& p, mk_i64 begin, mk_i64 end))

}  // namespace mk::simd

#endif  // MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_SIMD_H_
