// The parameters of LayerNormF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_NORM_LAYER_NORM_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_NORM_LAYER_NORM_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"
#include "kernels/math/activation_params.h"

namespace mk {

struct LayerNormF16Params {
  const device::half* x;         // [rows, channels] fp16, device, dense
  const device::half* residual;  // [rows, channels] fp16, device, dense, or null: none
  device::half* sum;    // [rows, channels] fp16, device, dense: x + residual; null exactly where
                        // residual is; may be x or residual
  const float* weight;  // [channels] fp32, device
  const float* bias;    // [channels] fp32, device, or null: 0
  device::half* y;      // [rows, channels] fp16, device, dense; may be x, or residual
  mk_i64 rows;          // 1 to 2^31 - 1
  mk_i64 channels;      // 1 to 4096
  float epsilon;        // >= 0, finite
  Activation activation;
  mk_u32 rms;  // 1: without the mean (RMSNorm); 0: LayerNorm
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_LAYER_NORM_F16_PARAMS_H_
