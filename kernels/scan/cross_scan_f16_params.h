// The parameters of CrossScanF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"

namespace mk {

// L = height * width tokens, at most 2^24; token (i, j) of the map has the index i * width + j.
struct CrossScanF16Params {
  const device::half* x;          // [height, width, channels] fp16, device, dense
  const device::half* projected;  // [L, 4, rank + 2 state] fp16, device, dense: for each token and
                                  // direction the rank step inputs r, then B, then C
  const device::half* dt_weight;  // [4, ceil(channels / 32), ceil(rank / 16), 2, 32, 8] fp16,
                                  // device, dense, 16-byte aligned; as PackDtWeight makes it
  const float* dt_bias;           // [4, channels] fp32, device, dense
  const float* a;                 // [4, state, channels] fp32, device, dense: A, so -exp(A_log)
  const float* d;                 // [channels] fp32, device: the sum of D over the four directions
  const float* norm_weight;       // [channels] fp32, device, or null: the merged sum is the result
  const float* norm_bias;         // [channels] fp32, device; null exactly where norm_weight is
  const device::half* gate;  // [height, width, channels] fp16, device, dense, or null; needs a norm
  device::half* y;           // [height, width, channels] fp16, device, dense; overlaps no input
  mk_i32 height;             // 1 to 2^16
  mk_i32 width;              // 1 to 2^16
  mk_i32 channels;           // 1 to 2^16; width * channels at most 2^28
  mk_i32 rank;               // 1 to 2^12
  mk_i32 state;              // N, 1 to 32
  float epsilon;             // of the norm: >= 0, finite
};

// What its launches take. The map is cut into tiles of tile_rows x tile_cols tokens (fewer at the
// lower and right edge); a piece of a row or column inside a tile is a segment.
struct CrossScanF16Launch {
  CrossScanF16Params p;
  // [4, segments, channels]: of each segment the sum of its steps. Null where `output` is alone.
  float* sums;
  // [4, state, segments, channels]: first each segment's end from 0, then where it starts from.
  float* states;
  mk_u32* tickets;  // [tiles], or null: a block has all channels of its tile, or there is no norm
  mk_i32 tile_rows, tile_cols;
  mk_i32 tiles_across, tiles_down;
  mk_i32 segments;  // of a direction, the most of any: a stride
  mk_i32 slices_per_block;
  mk_i32 slice_blocks;  // that share a tile
  // Where, in floats, the ends of lines and the states of threads begin in shared memory.
  mk_i32 ends_at, states_at;
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_F16_PARAMS_H_
