// The parameters of FeedForwardF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"
#include "kernels/linear/row_stats_f16_params.h"
#include "kernels/math/activation_params.h"

namespace mk {

// The norm's weight and bias are folded into the first layer (norm_fold.h makes weight1, sums1 and
// bias1). Where channels and hidden are multiples of 8 and x and both weights are aligned to 16
// bytes, one kernel may do all of it.
struct FeedForwardF16Params {
  const device::half* weight1;  // [hidden, channels] fp16, device, dense: W1 diag(norm weight)
  const float* sums1;           // [hidden] fp32, device: of weight1's rows as rounded
  const float* bias1;           // [hidden] fp32, device: with W1 times the norm's bias
  const device::half* weight2;  // [channels, hidden] fp16, device, dense
  const float* bias2;           // [channels] fp32, device; null: none
  device::half* x;              // [rows, channels] fp16, device, dense; read and added to
  RowStats* x_stats;      // [rows, ceil(channels / 32)], device: of what x becomes; null: none
  mk_i64 rows;            // tokens, 1 to 2^30
  mk_i64 channels;        // 1 to 2^20
  mk_i64 hidden;          // 1 to 2^20
  float epsilon;          // of the norm; > 0
  Activation activation;  // between the two
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_F16_PARAMS_H_
