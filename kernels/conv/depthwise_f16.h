// A depthwise 3x3 or 7x7 convolution of an fp16 map on a GPU, stride 1, padded to its own size,
// with an activation behind it:
//
//   y[i, j, c] = half(act(bias[c] + sum_{u, v} x[i + u - r, j + v - r, c] weight[u, v, c]))
//
// u, v in 0..side-1, r = side / 2, where x is 0 outside the map; fp32 sums, u and v ascending.
// 2 side^2 FLOP per output; moves 4 height width channels bytes and 4 side^2 channels of weights.
// Twin: DepthwiseF16Cpu. Source: ours.
#ifndef MERGEKERNEL_KERNELS_CONV_DEPTHWISE_F16_H_
#define MERGEKERNEL_KERNELS_CONV_DEPTHWISE_F16_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/conv/depthwise_f16_params.h"
#include "kernels/device/image.h"
#include "kernels/op.h"

namespace mk {

// The device code of depthwise_f16.cu. A copyable handle, valid as long as the model.
struct DepthwiseF16Kernels {
  // `four`: channels by fours, all of them aligned; `one`: one by one.
  Kernel<DepthwiseF16Params> side3_four, side3_one, side7_four, side7_one;

  // Only during create. `module` is mk_images_depthwise_f16_kernels, or its emulated twin.
  static Result<DepthwiseF16Kernels> Load(const Host& host, const DeviceModule& module);
};

// InvalidArgument naming the first broken precondition of DepthwiseF16Params.
Status CheckDepthwiseF16(const DepthwiseF16Params& params);

// REQUIRES CheckDepthwiseF16(params) is OK.
LaunchCost DepthwiseF16Cost(const DepthwiseF16Params& params);

// Checks and starts one launch; takes no scratch, does not wait.
Status DepthwiseF16(Context& context, const DepthwiseF16Kernels& kernels,
                    const DepthwiseF16Params& params);

// The CPU twin, over host memory, in double. REQUIRES CheckDepthwiseF16(params) is OK.
void DepthwiseF16Cpu(const DepthwiseF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_DEPTHWISE_F16_H_
