// The loops of LayerNorm, compiled for each instruction set.
#ifndef MERGEKERNEL_KERNELS_NORM_LAYER_NORM_SIMD_H_
#define MERGEKERNEL_KERNELS_NORM_LAYER_NORM_SIMD_H_

#include "kernels/norm/layer_norm_params.h"
#include "kernels/simd/dispatch.h"

namespace mk::simd {

// Rows [begin, end). REQUIRES CheckLayerNorm(p) is OK.
MK_SIMD_DECLARE(void NormRows(const LayerNormParams& p, mk_i64 begin, mk_i64 end))

}  // namespace mk::simd

#endif  // MERGEKERNEL_KERNELS_NORM_LAYER_NORM_SIMD_H_
