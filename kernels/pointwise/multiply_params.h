// The parameters of Multiply; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_PARAMS_H_
#define MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_PARAMS_H_

#include "core/abi/mk_types.h"

namespace mk {

struct MultiplyParams {
  const float* a;  // [count] fp32, device, dense
  const float* b;  // [count] fp32, device, dense
  float* y;        // [count] fp32, device, dense; may be a or b, and overlaps them in no other way
  mk_i64 count;    // 1 to 2^40
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_PARAMS_H_
