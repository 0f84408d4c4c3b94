// The parameters of GroupNormF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_NORM_GROUP_NORM_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_NORM_GROUP_NORM_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"
#include "kernels/math/activation_params.h"

namespace mk {

struct GroupNormF16Params {
  const device::half* x;         // [images, channels, positions] fp16, device, dense
  const device::half* residual;  // as x, or null: none
  device::half* sum;             // as x: x + residual; null: nobody wants it, always so without a
                                 // residual; may be x or residual
  const float* weight;           // [channels] fp32, device
  const float* bias;             // [channels] fp32, device, or null: 0
  device::half* y;               // as x; may be x, or residual
  mk_i64 images;                 // 1 to 2^20
  mk_i64 channels;               // 1 to 2^20
  mk_i64 positions;              // 1 to 2^26
  mk_i64 groups;                 // divides channels; images groups up to 2^31 - 1; a group has up
                                 // to 2^26 elements
  float epsilon;                 // >= 0, finite
  Activation activation;
};

// What its launches take. A row is one group of one image: its elements follow each other.
struct GroupNormF16Launch {
  GroupNormF16Params p;
  float* partials;  // [rows, slices, 2] fp32, device, 8-byte aligned: the sum of a slice and the
                    // squares about its mean; null where a row is not cut
  mk_i64 rows;      // images groups
  mk_i64 row_channels;  // channels / groups
  mk_i64 row_elements;  // row_channels positions
  mk_i64 slices;        // of 8192 elements, of a row
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_GROUP_NORM_F16_PARAMS_H_
