// What follows a matrix product on tensor cores while its tile is on the chip; plain, for device
// code too.
//
//   sum[i, j]  the product
//   norm       sum[i, j] = rstd_i (sum[i, j] - mean_i norm_sums[j])          where norm_stats
//   v[i, j]  = act(scale sum[i, j] + bias[j]) + residual[i, j]
//   y[i, j]  = v, as fp16 or fp32
//   stats    (mean, m2) of y[i, 32 g .. 32 g + 31] for each g, as stored      where y_stats
//
// LayerNorm as algebra. With x^ = (x - mean) rstd, LN(x) = gamma x^ + beta and W' = W diag(gamma):
//   (LN(x) W^T)[i, j] = rstd_i (sum_p x[i, p] W'[j, p] - mean_i s_j) + t_j
//   s_j = sum_p W'[j, p],  t_j = sum_p W[j, p] beta_p + (the layer's bias)_j
// so the product runs over x itself, and a row's statistics are needed only here. s is of W' as
// stored, rounded to fp16: then the two terms cancel exactly for the constant part of a row, and
// what a large mean costs is the rounding of the fp32 sum, |mean| sum |W'| 2^-24, which is far
// below the rounding of x itself to fp16, |mean| 2^-11 per element. kernels/linear/norm_fold.h
// makes W', s and t.
#ifndef MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"
#include "kernels/linear/row_stats_f16_params.h"
#include "kernels/math/activation_params.h"

namespace mk {

// Columns that a group of `y_stats` has; the last may have fewer.
inline constexpr mk_i32 kStatsGroup = 32;

struct EpilogueF16 {
  const float* bias = nullptr;             // [n] fp32, device; null: none
  const device::half* residual = nullptr;  // [m, n] fp16, device, dense; null: none. May be y
  device::half* y = nullptr;               // [m, n] fp16, device, dense; null: y_fp32 instead
  float* y_fp32 = nullptr;                 // [m, n] fp32, device, dense; null: y instead
  const RowStats* norm_stats = nullptr;    // [m, norm_groups] of x, device; null: no norm
  const float* norm_sums = nullptr;        // [n] fp32, device: s; null: no norm
  RowStats* y_stats = nullptr;             // [m, ceil(n / 32)], device; null: none
  mk_i64 norm_columns = 0;                 // that norm_stats are of: x's channels
  mk_i32 norm_groups = 0;                  // 1, or ceil(norm_columns / 32) of 32 columns each
  float norm_epsilon = 1e-5f;              // > 0
  float scale = 1.0f;
  Activation activation = Activation::kNone;
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_F16_PARAMS_H_
