// The parameters of DepthwiseF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_CONV_DEPTHWISE_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_CONV_DEPTHWISE_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"
#include "kernels/math/activation_params.h"

namespace mk {

// height ceil(width / 4) channels < 2^31.
struct DepthwiseF16Params {
  const device::half* x;  // [height, width, channels] fp16, device, dense
  const float* weight;    // [side, side, channels] fp32, device, dense: [ky, kx, c]
  const float* bias;      // [channels] fp32, device, or null: 0
  device::half* y;        // [height, width, channels] fp16, device, dense; does not overlap x
  mk_i32 height;          // 1 to 2^20
  mk_i32 width;           // 1 to 2^20
  mk_i32 channels;        // 1 to 2^20
  mk_i32 side;            // of the window: 3 or 7
  Activation activation;
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_DEPTHWISE_F16_PARAMS_H_
