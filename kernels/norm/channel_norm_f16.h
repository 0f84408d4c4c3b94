// LayerNorm over the channels of fp16 maps that are channel-first ("LayerNorm2d"), on a GPU, with a
// residual added before it and an activation behind it. For each image n and position i:
//
//   s[n, c, i] = half(x[n, c, i] + residual[n, c, i])     where there is a residual; else x
//   mean_ni    = sum_c s[n, c, i] / C
//   var_ni     = sum_c (s[n, c, i] - mean_ni)^2 / C
//   y[n, c, i] = half(act((s[n, c, i] - mean_ni) / sqrt(var_ni + epsilon) * weight[c] + bias[c]))
//
// the same as a transposition, LayerNormF16 and a transposition back, which would move three times
// as much. All of it in fp32 but for what is stored; the variance about the mean, in a second pass.
// Moves 4 bytes an element, with a residual 6, where its sum is wanted 8; and 8 C of weights.
// Twin: ChannelNormF16Cpu. Source: Ba, Kiros, Hinton, arXiv 1607.06450; code ours.
#ifndef MERGEKERNEL_KERNELS_NORM_CHANNEL_NORM_F16_H_
#define MERGEKERNEL_KERNELS_NORM_CHANNEL_NORM_F16_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/norm/channel_norm_f16_params.h"
#include "kernels/op.h"

namespace mk {

// The device code of channel_norm_f16.cu. A copyable handle, valid as long as the model.
struct ChannelNormF16Kernels {
  // A block for 64 or 16 positions, by 8 at once: a count of positions that 8 divides. For others
  // 16 positions, by two at once where 2 does, or one by one.
  Kernel<ChannelNormF16Launch> tile64, tile16, pairs, any;

  // Only during create. `module` is mk_images_channel_norm_f16_kernels, or its emulated twin.
  static Result<ChannelNormF16Kernels> Load(const Host& host, const DeviceModule& module);
};

// InvalidArgument naming the first broken precondition of ChannelNormF16Params.
Status CheckChannelNormF16(const ChannelNormF16Params& params);

// REQUIRES CheckChannelNormF16(params) is OK.
LaunchCost ChannelNormF16Cost(const ChannelNormF16Params& params);

// Checks and starts one launch; takes no scratch, does not wait.
Status ChannelNormF16(Context& context, const ChannelNormF16Kernels& kernels,
                      const ChannelNormF16Params& params);

// The CPU twin, over host memory: plain loops in double, one rounding where the device stores.
// REQUIRES CheckChannelNormF16(params) is OK.
void ChannelNormF16Cpu(const ChannelNormF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_CHANNEL_NORM_F16_H_
