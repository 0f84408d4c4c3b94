// The parameters of PatchEmbedF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_CONV_PATCH_EMBED_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_CONV_PATCH_EMBED_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"
#include "kernels/linear/epilogue_f16_params.h"

namespace mk {

// Where patch in_channels is a multiple of 8 (16 x 16 of 3 channels; 14 x 14 of 4, one of them
// zeros) and x and weight are aligned to 16 bytes, operands come in by 16 bytes.
struct PatchEmbedF16Params {
  const device::half* x;       // [height, width, in_channels] fp16, device, dense
  const device::half* weight;  // [out_channels, patch, patch, in_channels] fp16, device, dense
  mk_i64 height;               // a multiple of patch, up to 2^24
  mk_i64 width;                // a multiple of patch, up to 2^24
  mk_i64 in_channels;          // 1 to 64
  mk_i64 out_channels;         // 1 to 2^20
  mk_i64 patch;                // side of a patch, 1 to 64
  // Its rows are patches, row by row, at most 2^30; its columns output channels. No norm. y does
  // not overlap x. A position embedding is its residual.
  EpilogueF16 epilogue;
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_PATCH_EMBED_F16_PARAMS_H_
