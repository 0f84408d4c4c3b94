// Softmax of fp16 rows on a GPU:
//
//   m_i     = max_c scale x[i, c]
//   y[i, c] = half(e^(scale x[i, c] - m_i) / sum_c e^(scale x[i, c] - m_i))
//
// in fp32 but for what is stored. A row with a NaN, a +infinity, or nothing but -infinity is NaN.
// Moves 4 rows columns bytes; 5 FLOP per element. Twin: SoftmaxF16Cpu. Source: ours.
#ifndef MERGEKERNEL_KERNELS_POINTWISE_SOFTMAX_F16_H_
#define MERGEKERNEL_KERNELS_POINTWISE_SOFTMAX_F16_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/op.h"
#include "kernels/pointwise/softmax_f16_params.h"

namespace mk {

// The device code of softmax_f16.cu. A copyable handle, valid as long as the model.
struct SoftmaxF16Kernels {
  // A row in the registers of a warp, by chunks of 8 columns: up to 256, 1024 columns.
  Kernel<SoftmaxF16Params> chunk, chunks4;
  Kernel<SoftmaxF16Params> wide;  // any multiple of 8 columns
  Kernel<SoftmaxF16Params> any;

  // Only during create. `module` is mk_images_softmax_f16_kernels, or its emulated twin.
  static Result<SoftmaxF16Kernels> Load(const Host& host, const DeviceModule& module);
};

// InvalidArgument naming the first broken precondition of SoftmaxF16Params.
Status CheckSoftmaxF16(const SoftmaxF16Params& params);

// REQUIRES CheckSoftmaxF16(params) is OK.
LaunchCost SoftmaxF16Cost(const SoftmaxF16Params& params);

// Checks and starts one launch; takes no scratch, does not wait.
Status SoftmaxF16(Context& context, const SoftmaxF16Kernels& kernels,
                  const SoftmaxF16Params& params);

// The CPU twin, over host memory, in double. REQUIRES CheckSoftmaxF16(params) is OK.
void SoftmaxF16Cpu(const SoftmaxF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POINTWISE_SOFTMAX_F16_H_
