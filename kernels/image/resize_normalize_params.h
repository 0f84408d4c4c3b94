// The parameters of ResizeNormalize; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_PARAMS_H_
#define MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_PARAMS_H_

#include "core/abi/mk_types.h"

namespace mk {

// How samples are weighted: mk_u32, for device code has no enumerators of its own.
#define MK_RESIZE_TRIANGLE 0u
#define MK_RESIZE_BICUBIC 1u

struct ResizeNormalizeParams {
  const mk_u8* image;  // [height, width, channels] device, dense
  float* y;         // [crop_height + 2 pad, crop_width + 2 pad, out_channels] fp32, device, dense
  mk_i64 height;    // 1 to 2^20
  mk_i64 width;     // 1 to 2^20
  mk_i64 channels;  // 1 or 3
  mk_i64 resized_height;  // 1 to 2^40; equal to height: not resized
  mk_i64 resized_width;   // 1 to 2^40
  mk_i64 crop_top;        // the window of the resized image, inside it
  mk_i64 crop_left;
  mk_i64 crop_height;   // 1 to 2^20
  mk_i64 crop_width;    // 1 to 2^20
  mk_i64 pad;           // 0 to 2^20, on each side
  mk_i64 out_channels;  // 1 or 3
  float mean[3];        // finite; the first out_channels are read
  float std[3];         // finite, not 0
  mk_u32 filter;        // MK_RESIZE_TRIANGLE or MK_RESIZE_BICUBIC
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_PARAMS_H_
