// A linear layer on tensor cores: linear_f16.h says what it computes.
//
// Grid: TileBlocksF16 blocks, a tile of y each (tiles_f16.h has their sizes, threads, stages and
// shared memory, and which one a product takes). A block reads its rows of x and of W once:
//   2 (m k ceil(n / tile.n) + n k ceil(m / tile.m)) bytes, then residual and y once, and a few
//   words of the bias.
// matmul_f16.h is the loop over k, epilogue_f16.h what follows. No bank conflict; with 16-byte
// operands no wasted sector (but of the bias).
//
// mk_linear_f16_any takes operands of any k and alignment, element by element.
#include "kernels/linear/epilogue_f16.h"
#include "kernels/linear/linear_f16_params.h"
#include "kernels/linear/matmul_f16.h"

namespace mk {
namespace device {
namespace {

template <int kIndex, bool kVector>
MK_DEVICE void Linear(const LinearF16Params& p) {
  using Tile = MatmulTile<kIndex>;
  MK_DYNAMIC_SHARED(half, stages);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize;
  const TilePlace<Tile> place = TilePlace<Tile>::Of(static_cast<int>(blockIdx.x), p.m, p.n);
  const int k = static_cast<int>(p.k);
  RowLoader<Tile::kM, Tile::kThreads, kVector> load_x(p.x, place.row, p.m, k, thread);
  RowLoader<Tile::kN, Tile::kThreads, kVector> load_w(p.weight, place.column, p.n, k, thread);

  MatmulSums<Tile> sums = {};
  Multiply<Tile>(load_x, load_w, k, stages, thread, sums);

  SyncThreads();  // the last stage has been read by all: its memory takes the sums now
  float* slab = As<float>(stages) + warp * Tile::kWarpM * Tile::kWarpN;
  Finish<Tile>(p.epilogue, p.m, p.n, sums, slab, place.row + warp / Tile::kWarpsN * Tile::kWarpM,
               place.column + warp % Tile::kWarpsN * Tile::kWarpN, thread % kWarpSize);
}

}  // namespace
}  // namespace device
}  // namespace mk

#define MK_LINEAR_F16(name, tile, vector)                                                  \
  extern "C" __global__ void __launch_bounds__(mk::device::MatmulTile<tile>::kThreads,     \
                                               mk::device::MatmulTile<tile>::kBoundBlocks) \
      name(const mk::LinearF16Params p) {                                                  \
    mk::device::Linear<tile, vector>(p);                                                   \
  }

MK_LINEAR_F16(mk_linear_f16_128x128, mk::k128x128, true)
MK_LINEAR_F16(mk_linear_f16_128x64, mk::k128x64, true)
MK_LINEAR_F16(mk_linear_f16_64x128, mk::k64x128, true)
MK_LINEAR_F16(mk_linear_f16_64x64, mk::k64x64, true)
MK_LINEAR_F16(mk_linear_f16_32x64, mk::k32x64, true)
MK_LINEAR_F16(mk_linear_f16_any, mk::k64x64, false)
