// A LayerNorm folded into the linear layer behind it, once, when weights are loaded:
//
//   weight'[j, p] = weight[j, p] gamma[p], rounded to fp16
//   sums[j]       = sum_p weight'[j, p], of the rounded ones
//   bias'[j]      = bias[j] + sum_p weight[j, p] beta[p]
//
// epilogue_f16_params.h has the algebra. Source: ours.
#ifndef MERGEKERNEL_KERNELS_LINEAR_NORM_FOLD_H_
#define MERGEKERNEL_KERNELS_LINEAR_NORM_FOLD_H_

#include <cstdint>

#include "kernels/device/types.h"

namespace mk {

struct NormFoldInputs {
  const float* weight;  // [n, k] fp32, host, dense
  const float* bias;    // [n] fp32, host; null: zeros
  const float* gamma;   // [k] fp32, host: the norm's weight; null: ones
  const float* beta;    // [k] fp32, host: the norm's bias; null: zeros
  int64_t n, k;         // >= 1
};

struct NormFoldOutputs {
  device::half* weight;  // [n, k] fp16, host, dense
  float* sums;           // [n] fp32, host
  float* bias;           // [n] fp32, host; may be the input's
};

// Sums in double. One thread.
void FoldNorm(const NormFoldInputs& in, const NormFoldOutputs& out);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_NORM_FOLD_H_
