// The parameters of Conv3x3F16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_CONV_CONV3X3_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_CONV_CONV3X3_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"
#include "kernels/linear/epilogue_f16_params.h"

namespace mk {

// Where in_channels is a multiple of 8 and x and weight are aligned to 16 bytes, operands come in
// by 16 bytes.
struct Conv3x3F16Params {
  const device::half* x;       // [height, width, in_channels] fp16, device, dense
  const device::half* weight;  // [out_channels, 3, 3, in_channels] fp16, device, dense
  mk_i64 height;               // 1 to 2^24
  mk_i64 width;                // 1 to 2^24
  mk_i64 in_channels;          // 1 to 2^20
  mk_i64 out_channels;         // 1 to 2^20
  mk_i64 stride;               // 1 or 2; the padding is 1 on each side
  // Its rows are output positions, ceil(height / stride) ceil(width / stride) of them, at most
  // 2^30; its columns output channels. No norm. y does not overlap x.
  EpilogueF16 epilogue;
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_CONV3X3_F16_PARAMS_H_
