// The parameters of LayerNorm; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_NORM_LAYER_NORM_PARAMS_H_
#define MERGEKERNEL_KERNELS_NORM_LAYER_NORM_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/math/activation_params.h"

namespace mk {

struct LayerNormParams {
  const float* x;       // [rows, channels] fp32, device, dense
  const float* weight;  // [channels] fp32, device
  const float* bias;    // [channels] fp32, device
  float* y;             // [rows, channels] fp32, device, dense; may be x
  mk_i64 rows;          // >= 1
  mk_i64 channels;      // 1 to 2^24, where fp32 still counts exactly
  float epsilon;        // >= 0, finite
  Activation activation;
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_LAYER_NORM_PARAMS_H_
