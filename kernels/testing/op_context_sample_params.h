// Parameters of the kernel that OpContext's test runs; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_TESTING_OP_CONTEXT_SAMPLE_PARAMS_H_
#define MERGEKERNEL_KERNELS_TESTING_OP_CONTEXT_SAMPLE_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"

namespace mk::samples {

struct ReverseParams {
  const device::half* x;  // [64] fp16, device
  device::half* y;        // [64] fp16, device; may be x
};

}  // namespace mk::samples

#endif  // MERGEKERNEL_KERNELS_TESTING_OP_CONTEXT_SAMPLE_PARAMS_H_
