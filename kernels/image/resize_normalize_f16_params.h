// The parameters of ResizeNormalizeF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"
#include "kernels/image/resize_normalize_params.h"

namespace mk {

struct ResizeNormalizeF16Params {
  const mk_u8* image;  // [height, width, channels] device, dense
  device::half* y;  // [crop_height + 2 pad, crop_width + 2 pad, out_channels] fp16, device, dense
  mk_i64 height;    // 1 to 65535
  mk_i64 width;     // 1 to 2^20
  mk_i64 channels;  // 1 or 3
  mk_i64 resized_height;  // 1 to 2^40; equal to height: not resized
  mk_i64 resized_width;   // 1 to 2^40
  mk_i64 crop_top;        // the window of the resized image, inside it
  mk_i64 crop_left;
  mk_i64 crop_height;   // 1 to 65535 - 2 pad
  mk_i64 crop_width;    // 1 to 2^20
  mk_i64 pad;           // 0 to 2^14, on each side
  mk_i64 out_channels;  // 1 or 3
  float mean[3];        // finite; the first out_channels are read
  float std[3];         // finite, not 0
  mk_u32 filter;        // MK_RESIZE_TRIANGLE or MK_RESIZE_BICUBIC
};

// What its launches take.
struct ResizeNormalizeF16Launch {
  ResizeNormalizeF16Params p;
  float* filtered;   // [source_rows, crop_width, out_channels] fp32, device: filtered along x
  mk_i64 first_row;  // the source rows under the window
  mk_i64 source_rows;
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_IMAGE_RESIZE_NORMALIZE_F16_PARAMS_H_
