// The parameters of SoftmaxF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_POINTWISE_SOFTMAX_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_POINTWISE_SOFTMAX_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"

namespace mk {

struct SoftmaxF16Params {
  const device::half* x;  // [rows, columns] fp16, device, dense
  device::half* y;        // [rows, columns] fp16, device, dense; may be x
  mk_i64 rows;            // 1 to 2^31 - 1
  mk_i64 columns;         // 1 to 2^20
  float scale;            // finite; x is multiplied by it first
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POINTWISE_SOFTMAX_F16_PARAMS_H_
