// Statistics of the rows of a matrix, and the parameters of RowStatsF16; plain, for device code
// too.
#ifndef MERGEKERNEL_KERNELS_LINEAR_ROW_STATS_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_LINEAR_ROW_STATS_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"

namespace mk {

// Of a group of values: their mean, and the sum of the squared differences from it. Two groups
// merge without cancellation (Chan, Golub, LeVeque 1979), which sums of squares do not.
struct alignas(8) RowStats {
  float mean;
  float m2;
};

struct RowStatsF16Params {
  const device::half* x;  // [rows, channels] fp16, device, dense
  RowStats* stats;        // [rows], device: of each row as one group
  mk_i64 rows;            // 1 to 2^30
  mk_i64 channels;        // 1 to 2^20
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_ROW_STATS_F16_PARAMS_H_
