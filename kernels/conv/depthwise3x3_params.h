// The parameters of Depthwise3x3; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_PARAMS_H_
#define MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/math/activation_params.h"

namespace mk {

struct Depthwise3x3Params {
  const float* x;       // [height, width, channels] fp32, device, dense
  const float* weight;  // [3, 3, channels] fp32, device, dense: [ky, kx, c]
  float* y;             // [height, width, channels] fp32, device, dense; does not overlap x
  mk_i64 height;        // 1 to 2^24
  mk_i64 width;         // 1 to 2^24
  mk_i64 channels;      // 1 to 2^20
  Activation activation;
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_PARAMS_H_
