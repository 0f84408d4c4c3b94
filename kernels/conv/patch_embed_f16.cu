// Patches as tokens, as a matrix product on tensor cores: patch_embed_f16.h says what it computes.
//
// Grid: TileBlocksF16 blocks of the tile k64x64 (tiles_f16.h). A patch is a window of one column
// over a map whose channels are a row of a patch, so window_loader_f16.h gathers it;
// kernels/linear/matmul_f16.h and epilogue_f16.h do the rest.
#include "kernels/conv/patch_embed_f16_params.h"
#include "kernels/conv/window_loader_f16.h"
#include "kernels/linear/epilogue_f16.h"
#include "kernels/linear/matmul_f16.h"

namespace mk {
namespace device {
namespace {

template <bool kVector>
MK_DEVICE void Embed(const PatchEmbedF16Params& p) {
  using Tile = MatmulTile<k64x64>;
  MK_DYNAMIC_SHARED(half, stages);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize;
  const int patch = static_cast<int>(p.patch), channels = patch * static_cast<int>(p.in_channels);
  const int height = static_cast<int>(p.height), columns = static_cast<int>(p.width) / patch;
  const mk_i64 patches = static_cast<mk_i64>(height / patch) * columns;
  const WindowMap map = {p.x,     height,           columns,        channels,      columns,
                         patches, /*stride*/ patch, /*stride_x*/ 1, /*padding*/ 0, patch};
  const TilePlace<Tile> place =
      TilePlace<Tile>::Of(static_cast<int>(blockIdx.x), patches, p.out_channels);
  WindowLoader<Tile::kM, Tile::kThreads, kVector, 1> load_x(map, place.row, thread);
  RowLoader<Tile::kN, Tile::kThreads, kVector> load_w(p.weight, place.column, p.out_channels,
                                                      patch * channels, thread);

  MatmulSums<Tile> sums = {};
  Multiply<Tile>(load_x, load_w, patch * channels, stages, thread, sums);

  SyncThreads();  // the last stage has been read by all: its memory takes the sums now
  float* slab = As<float>(stages) + warp * Tile::kWarpM * Tile::kWarpN;
  Finish<Tile>(p.epilogue, patches, p.out_channels, sums, slab,
               place.row + warp / Tile::kWarpsN * Tile::kWarpM,
               place.column + warp % Tile::kWarpsN * Tile::kWarpN, thread % kWarpSize);
}

}  // namespace
}  // namespace device
}  // namespace mk

extern "C" __global__ void __launch_bounds__(128, 4)
    mk_patch_embed_f16_64x64(const mk::PatchEmbedF16Params p) {
  mk::device::Embed<true>(p);
}

extern "C" __global__ void __launch_bounds__(128, 4)
    mk_patch_embed_f16_any(const mk::PatchEmbedF16Params p) {
  mk::device::Embed<false>(p);
}
