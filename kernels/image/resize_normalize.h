// From 8-bit pixels to a network's input, channel-last, in one pass over the rows:
//
//   1. to fp32, 0..255. Three channels to one: (0.299 R + 0.587 G) + 0.114 B; one to three: thrice.
//   2. separable filter with antialias, first along x, then along y. n samples to m:
//        scale = n / m;  stretch = max(1, scale);  centre_i = (i + 0.5) scale
//        w_ij = k(|j + 0.5 - centre_i| / stretch)  for j in [0, n)
//        out_i = sum_j fl32(w_ij / sum_j w_ij) in_j, in fp32 with j ascending
//      triangle: k(t) = max(0, 1 - t)
//      bicubic:  k(t) = 1.5 t^3 - 2.5 t^2 + 1 below 1, -0.5 t^3 + 2.5 t^2 - 4 t + 2 below 2, else 0
//                (Keys, a = -0.5), and each pass ends with a clamp to 0..255, for it overshoots
//   3. a window of the result;  4. `pad` samples of 0 around it;  5. (x / 255 - mean[c]) / std[c].
//
// Only the rows and columns under the window are read and filtered. A source row is filtered along
// x into one row of scratch and at once added to the output rows it belongs to, so the scratch does
// not grow with the image's height. Reads height width channels bytes at most.
// Twin: ResizeNormalizeCpu. Source: ours; the definition is packs/vmamba/train/preprocess.py.
#ifndef MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_H_
#define MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/image/resize_normalize_params.h"
#include "kernels/op.h"

namespace mk {

// InvalidArgument naming the first broken precondition of ResizeNormalizeParams.
Status CheckResizeNormalize(const ResizeNormalizeParams& params);

// REQUIRES CheckResizeNormalize(params) is OK.
OpCost ResizeNormalizeCost(const ResizeNormalizeParams& params);

// The most that the filters of an axis take, of any `source` samples of which a window of `window`
// is made, in bytes. REQUIRES both in 1..2^40, filter as in ResizeNormalizeParams.
int64_t ResizeFilterBytes(int64_t source, int64_t window, mk_u32 filter);

// Checks and runs on the context's device. Takes and gives back scratch: the filters, at most
// ResizeFilterBytes for each axis, and 4 out_channels (width + crop_width) bytes per thread, for at
// most 8 threads. Unimplemented on devices without code.
Status ResizeNormalize(Context& context, const ResizeNormalizeParams& params);

// The CPU twin: blocks until done. REQUIRES CheckResizeNormalize(params) is OK.
Status ResizeNormalizeCpu(Context& context, const ResizeNormalizeParams& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_H_
