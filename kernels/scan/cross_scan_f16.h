// The selective scan of an fp16 map along four directions on a GPU, merged, then normed and gated:
//
//   step_t,c = softplus(sum_r projected_t,r dt_weight[k, r, c] + dt_bias[k, c])
//   h_t,n,c  = exp(step_t,c a[k, n, c]) h_t-1,n,c + step_t,c B_t,n x_t,c
//   s_t,c    = half(sum_k sum_n C_t,n h_t,n,c + d[c] x_t,c)
//   y_t,c    = half(half(norm(s_t)[c]) gate[t, c])     without a norm: s_t,c; without a gate: 1
//
// t runs over the tokens along direction k: 0 row by row, 1 column by column, 2 and 3 the same
// backwards; h before the first token is 0. norm is LayerNorm over channels. As kernels/scan/
// cross_scan.h, and what stands behind it in the model: nothing but y leaves. Steps, states, sums
// and statistics are fp32; the weights of the steps are fp16.
//
// With a single state a map of one tile (32 x 32 tokens at most) is one launch, two where a norm
// needs channels of several blocks; all else is three. cross_scan_f16.cu says how, and what it
// moves. 4 L channels (5 state + 9) FLOP for each pass over the tokens, of which there are two, and
// 8 L channels rank on tensor cores. Twin: CrossScanF16Cpu. Source: Liu et al., "VMamba", arXiv
// 2401.10166; Gu, Dao, "Mamba", arXiv 2312.00752; code ours.
#ifndef MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_F16_H_
#define MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_F16_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/op.h"
#include "kernels/scan/cross_scan_f16_params.h"

namespace mk {

// The device code of cross_scan_f16.cu. A copyable handle, valid as long as the model.
struct CrossScanF16Kernels {
  Kernel<CrossScanF16Launch> one_ends, one_output;    // a single state
  Kernel<CrossScanF16Launch> many_ends, many_output;  // several
  Kernel<CrossScanF16Launch> carry, clear;

  // Only during create. `module` is mk_images_cross_scan_f16_kernels, or its emulated twin.
  static Result<CrossScanF16Kernels> Load(const Host& host, const DeviceModule& module);
};

// How a map is cut up: decided by the shape alone.
struct CrossScanF16Plan {
  int64_t tile_rows, tile_cols;
  int64_t tiles_down, tiles_across;
  int64_t slices, slices_per_block, slice_blocks;
  int64_t lines;                          // of a tile, that a block has warps for
  int64_t row_segments, column_segments;  // of the map
  uint32_t threads;
  uint32_t ends_shared_bytes, output_shared_bytes;
  bool tickets;  // a norm needs channels of several blocks
  bool alone;    // one tile and a single state: `output` needs no `ends` and `carry`
  int launches;
};

// Elements of the packed weights of the steps. REQUIRES counts as in CrossScanF16Params.
int64_t PackedDtWeightElements(int64_t channels, int64_t rank);

// [4, rank, channels] fp32, the layout of CrossScanParams::dt_weight, to the order in which lanes
// take it as an operand of mma, each rounded to half. Of the last dimension of 8, element e of lane
// 4 g + t in half m of slice s and part i is W[32 s + 16 m + g + 8 (e / 2 % 2)][16 i + 2 t + e % 2
// + 8 (e / 4)] of channels and ranks; 0 beyond either.
void PackDtWeight(const float* dt_weight, int64_t channels, int64_t rank, device::half* packed);

// InvalidArgument naming the first broken precondition of CrossScanF16Params.
Status CheckCrossScanF16(const CrossScanF16Params& params);

// The following REQUIRE that CheckCrossScanF16(params) is OK.
CrossScanF16Plan PlanCrossScanF16(const CrossScanF16Params& params);
LaunchCost CrossScanF16Cost(const CrossScanF16Params& params);  // of all launches
// What CrossScanF16 takes of scratch and gives back, in bytes, each piece rounded up to 64.
int64_t CrossScanF16Scratch(const CrossScanF16Params& params);

// Checks and starts the launches; does not wait.
Status CrossScanF16(Context& context, const CrossScanF16Kernels& kernels,
                    const CrossScanF16Params& params);

// The CPU twin, over host memory, one token after the other in double.
void CrossScanF16Cpu(const CrossScanF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_F16_H_
