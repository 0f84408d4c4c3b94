// The parameters of MultiplyF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"

namespace mk {

struct MultiplyF16Params {
  const device::half* a;  // [count] fp16, device, dense
  const device::half* b;  // [count] fp16, device, dense
  device::half* y;  // [count] fp16, device, dense; may be a or b, and overlaps them in no other way
  mk_i64 count;     // 1 to 2^38
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_F16_PARAMS_H_
