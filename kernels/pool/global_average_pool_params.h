// The parameters of GlobalAveragePool; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_PARAMS_H_
#define MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_PARAMS_H_

#include "core/abi/mk_types.h"

namespace mk {

struct GlobalAveragePoolParams {
  const float* x;   // [rows, channels] fp32, device, dense
  float* y;         // [channels] fp32, device; does not overlap x
  mk_i64 rows;      // 1 to 2^24, where fp32 still counts exactly
  mk_i64 channels;  // 1 to 2^20
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_PARAMS_H_
