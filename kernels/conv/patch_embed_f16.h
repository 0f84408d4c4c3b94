// Patches of an image as tokens: a convolution whose stride is its window, on tensor cores:
//
//   y[i, j, o] = act(bias[o] + sum_{u, v < P, c} x[P i + u, P j + v, c] weight[o, u, v, c])
//
// scale, residual and row statistics as in epilogue_f16_params.h. An implicit matrix product of
// patches x out_channels x P^2 in_channels: the P in_channels values of a patch's row are
// consecutive in x, so a patch is a window of P rows and one column over a map of width / P columns
// of P in_channels channels. Each operand once is 2 (height width ci + P^2 ci co + patches co)
// bytes. Twin: PatchEmbedF16Cpu. Source: ours.
#ifndef MERGEKERNEL_KERNELS_CONV_PATCH_EMBED_F16_H_
#define MERGEKERNEL_KERNELS_CONV_PATCH_EMBED_F16_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/conv/patch_embed_f16_params.h"
#include "kernels/device/image.h"
#include "kernels/op.h"

namespace mk {

// Once per image, so one tile (k64x64) serves.
struct PatchEmbedF16Kernels {
  Kernel<PatchEmbedF16Params> chunks;  // operands by 16 bytes
  Kernel<PatchEmbedF16Params> any;

  static Result<PatchEmbedF16Kernels> Load(const Host& host, const DeviceModule& module);
};

// InvalidArgument naming the first broken precondition of PatchEmbedF16Params.
Status CheckPatchEmbedF16(const PatchEmbedF16Params& params);

// REQUIRES CheckPatchEmbedF16(params) is OK.
LaunchCost PatchEmbedF16Cost(const PatchEmbedF16Params& params);

// Checks and launches, once; on the CPU device runs the twin. Takes no scratch.
Status PatchEmbedF16(Context& context, const PatchEmbedF16Kernels& kernels,
                     const PatchEmbedF16Params& params);

// The CPU twin: plain loops on host memory, sums in double. Blocks; one thread. REQUIRES
// CheckPatchEmbedF16(params) is OK.
void PatchEmbedF16Cpu(const PatchEmbedF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_PATCH_EMBED_F16_H_
