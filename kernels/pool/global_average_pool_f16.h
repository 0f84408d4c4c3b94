// The mean of all fp16 tokens, channel by channel, on a GPU, of the LayerNorm of each where it has
// weights:
//
//   n[i, c] = (x[i, c] - mean_i) / sqrt(var_i + epsilon)     without weights: x[i, c]
//   y[c]    = half(sum_i n[i, c] / rows * weight[c] + bias[c])
//
// for the mean of w n_i + b is w (mean of n_i) + b. Sums in fp32: 64 rows in their order, then the
// groups of 64 in an order of their own, so the same bits each time; no atomics.
// Moves 2 channels (rows + 1) bytes, 8 channels of weights, and with more than 64 rows 8 channels
// rows / 64 of partial sums. Twin: GlobalAveragePoolF16Cpu. Source: ours.
#ifndef MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_F16_H_
#define MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_F16_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/op.h"
#include "kernels/pool/global_average_pool_f16_params.h"

namespace mk {

// The device code of global_average_pool_f16.cu. A copyable handle, valid as long as the model.
struct GlobalAveragePoolF16Kernels {
  Kernel<GlobalAveragePoolF16Launch> pairs;  // an even count of channels, x 4-byte aligned
  Kernel<GlobalAveragePoolF16Launch> any;
  Kernel<GlobalAveragePoolF16Launch> combine;

  // Only during create. `module` is mk_images_global_average_pool_f16_kernels, or its emulated
  // twin.
  static Result<GlobalAveragePoolF16Kernels> Load(const Host& host, const DeviceModule& module);
};

// InvalidArgument naming the first broken precondition of GlobalAveragePoolF16Params.
Status CheckGlobalAveragePoolF16(const GlobalAveragePoolF16Params& params);

// Of both launches. REQUIRES CheckGlobalAveragePoolF16(params) is OK.
LaunchCost GlobalAveragePoolF16Cost(const GlobalAveragePoolF16Params& params);

// The scratch that GlobalAveragePoolF16 takes and gives back, in bytes.
int64_t GlobalAveragePoolF16Scratch(int64_t rows, int64_t channels);

// Checks and starts one launch, for more than 64 rows two; does not wait.
Status GlobalAveragePoolF16(Context& context, const GlobalAveragePoolF16Kernels& kernels,
                            const GlobalAveragePoolF16Params& params);

// The CPU twin, over host memory, in double. REQUIRES CheckGlobalAveragePoolF16(params) is OK.
void GlobalAveragePoolF16Cpu(const GlobalAveragePoolF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_F16_H_
