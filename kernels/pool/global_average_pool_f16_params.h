// The parameters of GlobalAveragePoolF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"

namespace mk {

struct GlobalAveragePoolF16Params {
  const device::half* x;  // [rows, channels] fp16, device, dense
  const float* weight;    // [channels] fp32, device, or null: the rows are not normed
  const float* bias;      // [channels] fp32, device; null exactly where weight is
  device::half* y;        // [channels] fp16, device; does not overlap x
  mk_i64 rows;            // 1 to 2^20
  mk_i64 channels;        // 1 to 2^20
  float epsilon;          // >= 0, finite; of the norm
};

// What its launches take.
struct GlobalAveragePoolF16Launch {
  GlobalAveragePoolF16Params p;
  float* partials;  // [groups, channels] fp32, device: sums of the rows of each group
  mk_i64 groups;    // of 64 rows; 1: there are no partials
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_F16_PARAMS_H_
