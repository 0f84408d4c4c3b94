// The loops of Depthwise3x3, compiled for each instruction set.
#ifndef MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_SIMD_H_
#define MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_SIMD_H_

#include "kernels/conv/depthwise3x3_params.h"
#include "kernels/simd/dispatch.h"

namespace mk::simd {

// Output rows [begin, end). `zeros`: p.channels floats of 0, for what lies outside the map.
// REQUIRES CheckDepthwise3x3(p) is OK.
MK_SIMD_DECLARE(void DepthwiseRows(const Depthwise3x3Params& p, const float* zeros, mk_i64 begin,
                                   mk_i64 end))

}  // namespace mk::simd

#endif  // MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_SIMD_H_
