// A 3x3 convolution as a matrix product on tensor cores: conv3x3_f16.h says what it computes.
//
// Grid, block and shared memory: a tile of tiles_f16.h, of positions x output channels. A block
// reads what its windows see tap by tap, from L2 after the first, and its rows of the weight once.
// window_loader_f16.h gathers, kernels/linear/matmul_f16.h is the loop over taps and channels,
// kernels/linear/epilogue_f16.h what follows. No bank conflict; zeros outside the map are made by
// cp.async, without a load.
//
// mk_conv3x3_f16_any takes any number of channels, element by element.
#include "kernels/conv/conv3x3_f16_params.h"
#include "kernels/conv/window_loader_f16.h"
#include "kernels/linear/epilogue_f16.h"
#include "kernels/linear/matmul_f16.h"

namespace mk {
namespace device {
namespace {

template <int kIndex, bool kVector>
MK_DEVICE void Convolve(const Conv3x3F16Params& p) {
  using Tile = MatmulTile<kIndex>;
  MK_DYNAMIC_SHARED(half, stages);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarpSize;
  const int channels = static_cast<int>(p.in_channels), stride = static_cast<int>(p.stride);
  const int height = static_cast<int>(p.height), width = static_cast<int>(p.width);
  const int out_width = (width - 1) / stride + 1;
  const mk_i64 positions = static_cast<mk_i64>((height - 1) / stride + 1) * out_width;
  const WindowMap map = {p.x,       height, width,  channels, out_width,
                         positions, stride, stride, 1,        /*taps=*/3 * 3};
  const TilePlace<Tile> place =
      TilePlace<Tile>::Of(static_cast<int>(blockIdx.x), positions, p.out_channels);
  WindowLoader<Tile::kM, Tile::kThreads, kVector, 3> load_x(map, place.row, thread);
  RowLoader<Tile::kN, Tile::kThreads, kVector> load_w(p.weight, place.column, p.out_channels,
                                                      9 * channels, thread);

  MatmulSums<Tile> sums = {};
  Multiply<Tile>(load_x, load_w, 9 * channels, stages, thread, sums);

  SyncThreads();  // the last stage has been read by all: its memory takes the sums now
  float* slab = As<float>(stages) + warp * Tile::kWarpM * Tile::kWarpN;
  Finish<Tile>(p.epilogue, positions, p.out_channels, sums, slab,
               place.row + warp / Tile::kWarpsN * Tile::kWarpM,
               place.column + warp % Tile::kWarpsN * Tile::kWarpN, thread % kWarpSize);
}

}  // namespace
}  // namespace device
}  // namespace mk

#define MK_CONV3X3_F16(name, tile, vector)                                                 \
  extern "C" __global__ void __launch_bounds__(mk::device::MatmulTile<tile>::kThreads,     \
                                               mk::device::MatmulTile<tile>::kBoundBlocks) \
      name(const mk::Conv3x3F16Params p) {                                                 \
    mk::device::Convolve<tile, vector>(p);                                                 \
  }

MK_CONV3X3_F16(mk_conv3x3_f16_128x128, mk::k128x128, true)
MK_CONV3X3_F16(mk_conv3x3_f16_128x64, mk::k128x64, true)
MK_CONV3X3_F16(mk_conv3x3_f16_64x128, mk::k64x128, true)
MK_CONV3X3_F16(mk_conv3x3_f16_64x64, mk::k64x64, true)
MK_CONV3X3_F16(mk_conv3x3_f16_32x64, mk::k32x64, true)
MK_CONV3X3_F16(mk_conv3x3_f16_any, mk::k64x64, false)
