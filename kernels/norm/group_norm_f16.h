// GroupNorm of fp16 maps, channel-first, on a GPU, with a residual added before it and an
// activation behind it. For each image n, and each group g of channels c, over positions i:
//
//   s[n, c, i] = half(x[n, c, i] + residual[n, c, i])     where there is a residual; else x
//   mean_ng    = sum_{c in g, i} s[n, c, i] / (C / G * P)
//   var_ng     = sum_{c in g, i} (s[n, c, i] - mean_ng)^2 / (C / G * P)
//   y[n, c, i] = half(act((s[n, c, i] - mean_ng) / sqrt(var_ng + epsilon) * weight[c] + bias[c]))
//
// All of it in fp32 but for what is stored; the variance about the mean, in a second pass, so that
// a large mean does not cancel it. G = 1 is a LayerNorm over all of an image, G = C InstanceNorm.
// Moves 4 bytes an element, with a residual 6, where its sum is wanted 8; and 8 C of weights. A
// group of more than 16384 elements takes two launches, the second of which reads s again: 2 bytes
// more (4 with a residual and no sum), from L2 as far as it holds the map; and partial sums, 16
// bytes for 8192 elements. Twin: GroupNormF16Cpu.
// Source: Wu, He, arXiv 1803.08494; for the merging of slices Chan, Golub, LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances", 1979; code ours.
#ifndef MERGEKERNEL_KERNELS_NORM_GROUP_NORM_F16_H_
#define MERGEKERNEL_KERNELS_NORM_GROUP_NORM_F16_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/norm/group_norm_f16_params.h"
#include "kernels/op.h"

namespace mk {

// The device code of group_norm_f16.cu. A copyable handle, valid as long as the model.
struct GroupNormF16Kernels {
  // A warp for a group (up to 1024 elements), a block (up to 16384), or blocks of 8192 elements
  // each, in two launches. By 8 elements; the second of each for what is not aligned, or a group
  // whose elements are no multiple of 8.
  Kernel<GroupNormF16Launch> warp, warp_any;
  Kernel<GroupNormF16Launch> block, block_any;
  Kernel<GroupNormF16Launch> statistics, statistics_any, apply, apply_any;

  // Only during create. `module` is mk_images_group_norm_f16_kernels, or its emulated twin.
  static Result<GroupNormF16Kernels> Load(const Host& host, const DeviceModule& module);
};

// InvalidArgument naming the first broken precondition of GroupNormF16Params.
Status CheckGroupNormF16(const GroupNormF16Params& params);

// Of both launches, where there are two. REQUIRES CheckGroupNormF16(params) is OK.
LaunchCost GroupNormF16Cost(const GroupNormF16Params& params);

// The scratch that GroupNormF16 takes and gives back, in bytes. REQUIRES as above.
int64_t GroupNormF16Scratch(const GroupNormF16Params& params);

// Checks and starts one launch, for groups of more than 16384 elements two; does not wait.
Status GroupNormF16(Context& context, const GroupNormF16Kernels& kernels,
                    const GroupNormF16Params& params);

// The CPU twin, over host memory: plain loops in double, one rounding where the device stores.
// REQUIRES CheckGroupNormF16(params) is OK.
void GroupNormF16Cpu(const GroupNormF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_GROUP_NORM_F16_H_
