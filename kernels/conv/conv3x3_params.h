// The parameters of Conv3x3; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_CONV_CONV3X3_PARAMS_H_
#define MERGEKERNEL_KERNELS_CONV_CONV3X3_PARAMS_H_

#include "core/abi/mk_types.h"

namespace mk {

struct Conv3x3Params {
  const float* x;       // [height, width, in_channels] fp32, device, dense
  const float* weight;  // [3, 3, in_channels, out_channels] fp32, device, dense: [ky, kx, ci, co]
  const float* bias;    // [out_channels] fp32, device; null: none
  float* y;  // [ceil(height / stride), ceil(width / stride), out_channels] fp32, device, dense;
             // does not overlap x
  mk_i64 height;        // 1 to 2^24
  mk_i64 width;         // 1 to 2^24
  mk_i64 in_channels;   // 1 to 2^20
  mk_i64 out_channels;  // 1 to 2^20
  mk_i64 stride;        // 1 or 2; the padding is 1 on each side
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_CONV3X3_PARAMS_H_
