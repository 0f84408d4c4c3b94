// The mean of each row, and the sum of squared differences from it:
//
//   mean_i = sum_c x[i, c] / channels,  m2_i = sum_c (x[i, c] - mean_i)^2
//
// for a LayerNorm that is folded into the product behind it (epilogue_f16_params.h), where whoever
// made x left no statistics. 4 rows channels FLOP; moves 2 rows channels + 8 rows bytes. Twin:
// RowStatsF16Cpu. Source: ours.
#ifndef MERGEKERNEL_KERNELS_LINEAR_ROW_STATS_F16_H_
#define MERGEKERNEL_KERNELS_LINEAR_ROW_STATS_F16_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/linear/row_stats_f16_params.h"
#include "kernels/op.h"

namespace mk {

struct RowStatsF16Kernels {
  Kernel<RowStatsF16Params> row;  // a warp per row

  static Result<RowStatsF16Kernels> Load(const Host& host, const DeviceModule& module);
};

// InvalidArgument naming the first broken precondition of RowStatsF16Params.
Status CheckRowStatsF16(const RowStatsF16Params& params);

// REQUIRES CheckRowStatsF16(params) is OK.
LaunchCost RowStatsF16Cost(const RowStatsF16Params& params);

// Checks and launches, once; on the CPU device runs the twin. Takes no scratch.
Status RowStatsF16(Context& context, const RowStatsF16Kernels& kernels,
                   const RowStatsF16Params& params);

// The CPU twin, in double, on host memory. REQUIRES CheckRowStatsF16(params) is OK.
void RowStatsF16Cpu(const RowStatsF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_ROW_STATS_F16_H_
