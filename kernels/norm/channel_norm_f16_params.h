// The parameters of ChannelNormF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_NORM_CHANNEL_NORM_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_NORM_CHANNEL_NORM_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"
#include "kernels/math/activation_params.h"

namespace mk {

struct ChannelNormF16Params {
  const device::half* x;         // [images, channels, positions] fp16, device, dense
  const device::half* residual;  // as x, or null: none
  device::half* sum;             // as x: x + residual; null: nobody wants it, always so without a
                                 // residual; may be x or residual
  const float* weight;           // [channels] fp32, device
  const float* bias;             // [channels] fp32, device, or null: 0
  device::half* y;               // as x; may be x, or residual
  mk_i64 images;                 // 1 to 2^20
  mk_i64 channels;               // 1 to 2048
  mk_i64 positions;              // 1 to 2^26
  float epsilon;                 // >= 0, finite
  Activation activation;
};

// What its launch takes.
struct ChannelNormF16Launch {
  ChannelNormF16Params p;
  mk_i64 tiles;  // of the positions of an image
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_CHANNEL_NORM_F16_PARAMS_H_
