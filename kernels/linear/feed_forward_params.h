// The parameters of FeedForward; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_PARAMS_H_
#define MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/math/activation_params.h"

namespace mk {

struct FeedForwardParams {
  const float* norm_weight;  // [channels] fp32, device
  const float* norm_bias;    // [channels] fp32, device
  const float* weight1;      // [hidden, channels] fp32, device, dense: as checkpoints store it
  const float* bias1;        // [hidden] fp32, device; null: none
  const float* weight2;      // [channels, hidden] fp32, device, dense
  const float* bias2;        // [channels] fp32, device; null: none
  float* x;                  // [rows, channels] fp32, device, dense; read and added to
  mk_i64 rows;               // tokens, 1 to 2^31 - 1
  mk_i64 channels;           // 1 to 2^20
  mk_i64 hidden;             // 1 to 2^20
  float epsilon;             // of the norm; >= 0, finite
  Activation activation;     // between the two
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_PARAMS_H_
