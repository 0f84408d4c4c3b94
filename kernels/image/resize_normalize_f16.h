// From 8-bit pixels to a network's fp16 input on a GPU, channel-last: ResizeNormalize
// (resize_normalize.h has the steps and their formulas), its result rounded to half.
//
// Without a resize equal to that to the bit. With one, weights are computed in fp32, from exact
// integers, where the CPU has doubles: samples differ by less than 1e-3 of one of 255 levels, and
// halves only where that lies across a rounding.
// Moves height width channels bytes at most and 2 bytes per output; with a resize also 8 bytes for
// each column of the window, channel and source row under it. Twin: ResizeNormalizeCpu.
// Source: ours; the definition is packs/vmamba/train/preprocess.py.
#ifndef MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_F16_H_
#define MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_F16_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/image/resize_normalize_f16_params.h"
#include "kernels/op.h"

namespace mk {

// The device code of resize_normalize_f16.cu. A copyable handle, valid as long as the model.
struct ResizeNormalizeF16Kernels {
  Kernel<ResizeNormalizeF16Launch> direct;  // no resize
  Kernel<ResizeNormalizeF16Launch> across, down;

  // Only during create. `module` is mk_images_resize_normalize_f16_kernels, or its emulated twin.
  static Result<ResizeNormalizeF16Kernels> Load(const Host& host, const DeviceModule& module);
};

// InvalidArgument naming the first broken precondition of ResizeNormalizeF16Params.
Status CheckResizeNormalizeF16(const ResizeNormalizeF16Params& params);

// The following REQUIRE that CheckResizeNormalizeF16(params) is OK.
LaunchCost ResizeNormalizeF16Cost(const ResizeNormalizeF16Params& params);  // of all launches
// What ResizeNormalizeF16 takes of scratch and gives back, in bytes.
int64_t ResizeNormalizeF16Scratch(const ResizeNormalizeF16Params& params);

// Checks and starts one launch, with a resize two; does not wait.
Status ResizeNormalizeF16(Context& context, const ResizeNormalizeF16Kernels& kernels,
                          const ResizeNormalizeF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_F16_H_
