// The product of two fp16 tensors on a GPU, element by element, each rounded once:
//
//   y[i] = half(a[i] b[i])
//
// count FLOP; moves 6 count bytes. Twin: MultiplyF16Cpu, equal to the bit. Source: ours.
#ifndef MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_F16_H_
#define MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_F16_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/op.h"
#include "kernels/pointwise/multiply_f16_params.h"

namespace mk {

// The device code of multiply_f16.cu. A copyable handle, valid as long as the model.
struct MultiplyF16Kernels {
  Kernel<MultiplyF16Params> vectors;  // pointers that are 16-byte aligned
  Kernel<MultiplyF16Params> any;

  // Only during create. `module` is mk_images_multiply_f16_kernels, or its emulated twin.
  static Result<MultiplyF16Kernels> Load(const Host& host, const DeviceModule& module);
};

// InvalidArgument naming the first broken precondition of MultiplyF16Params.
Status CheckMultiplyF16(const MultiplyF16Params& params);

// REQUIRES CheckMultiplyF16(params) is OK.
LaunchCost MultiplyF16Cost(const MultiplyF16Params& params);

// Checks and starts one launch; takes no scratch, does not wait.
Status MultiplyF16(Context& context, const MultiplyF16Kernels& kernels,
                   const MultiplyF16Params& params);

// The CPU twin, over host memory. REQUIRES CheckMultiplyF16(params) is OK.
void MultiplyF16Cpu(const MultiplyF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_F16_H_
