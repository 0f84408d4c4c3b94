// LayerNorm over the channels of fp16 maps that are channel-first: a block for a tile of positions
// and all of their channels, which it keeps in shared memory. The mean first, then the squares
// about it, then the result.
//
// Grid: images ceil(positions / tile). Block: 256 threads. Shared memory: 2 tile channels bytes,
// dynamic, and for the sums 64 bytes for each position of the tile.
// A thread has kWidth positions that follow each other, and every kRows-th channel; the lanes that
// follow each other read the tile's 128 or 32 bytes of one channel, and the next lanes those of the
// next channel: whole sectors where the positions are aligned. Each thread's sums go over the lanes
// of its warp by shuffles, over the warps through shared memory.
//
// tile64: 8 positions a thread, 32 rows of channels. tile16: 8, 128 rows; for small maps, where 64
// would leave SMs without work, and for more than 384 channels, whose tile of 64 is over 48 KB.
// pairs: 16 positions by 2, 32 rows. any: 16 by 1, 16 rows.
//
// Asks for 4 bytes an element (with a residual 6, with its sum 8), and for 8 bytes of weights for
// each piece of kWidth elements, which come from L1.
#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"
#include "kernels/math/activation_device.h"
#include "kernels/norm/channel_norm_f16_params.h"
#include "kernels/norm/piece_device.h"

namespace mk {
namespace {

using device::half;
using device::kWarpSize;
using device::Piece;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

template <int kWidth, int kTile>
struct ChannelTile {
  static constexpr int kLanes = kTile / kWidth;  // of a channel
  static constexpr int kRows = kThreads / kLanes;
  static_assert(kLanes <= kWarpSize, "a warp has whole channels");

  // The sums over all threads with the same positions, the same bits in each. `totals`: kTile
  // floats for each warp.
  static MK_DEVICE void Sum(float (&v)[kWidth], int thread, float* totals MK_SITE) {
    const int lane = thread % kWarpSize;
    MK_UNROLL
    for (int step = kLanes; step < kWarpSize; step *= 2) {
      MK_UNROLL
      for (int j = 0; j < kWidth; ++j) v[j] += device::ShuffleXor(v[j], step);
    }
    if (lane < kLanes) {
      MK_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        device::Store(totals + thread / kWarpSize * kTile + j * kLanes + lane, v[j]);
      }
    }
    device::SyncThreads(MK_PASS_ONLY_SITE);  // the sums of all warps are there
    MK_UNROLL
    for (int j = 0; j < kWidth; ++j) v[j] = 0.0f;
    MK_NO_UNROLL  // so that not all of the loads are under way at once: 96 registers with CUDA 12.6
        for (int w = 0; w < kWarps; ++w) {
      MK_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        v[j] += device::Load(totals + w * kTile + j * kLanes + lane % kLanes);
      }
    }
  }

  static MK_DEVICE void Norm(const ChannelNormF16Launch& launch) {
    using Raw = typename Piece<kWidth>::Raw;
    MK_DYNAMIC_SHARED(half, held);  // [channels, kTile]; what a thread keeps only it reads
    MK_SHARED(float, totals, 2 * kWarps * kTile);
    const ChannelNormF16Params& p = launch.p;
    const int thread = static_cast<int>(threadIdx.x);
    const mk_u32 tiles = static_cast<mk_u32>(launch.tiles);
    const mk_u32 image = blockIdx.x / tiles;
    const int in_tile = thread % kLanes * kWidth;
    const mk_i64 position = static_cast<mk_i64>(blockIdx.x - image * tiles) * kTile + in_tile;
    // Threads outside take part in the sums, with nothing.
    const int channels = position < p.positions ? static_cast<int>(p.channels) : 0;
    const mk_i64 begin = image * p.channels * p.positions + position;
    const float count = static_cast<float>(p.channels);

    float mean[kWidth] = {};
    for (int c = thread / kLanes; c < channels; c += kRows) {
      const Raw raw = device::ReadNormed<kWidth>(p, begin + c * p.positions, true);
      device::Store(device::As<Raw>(held + c * kTile + in_tile), raw);
      float v[kWidth];
      Piece<kWidth>::ToFloats(raw, v);
      MK_UNROLL
      for (int j = 0; j < kWidth; ++j) mean[j] += v[j];
    }
    Sum(mean, thread, totals);
    MK_UNROLL
    for (int j = 0; j < kWidth; ++j) mean[j] /= count;

    float scale[kWidth] = {};
    MK_NO_UNROLL
    for (int c = thread / kLanes; c < channels; c += kRows) {
      float v[kWidth];
      Piece<kWidth>::ToFloats(device::Load(device::As<Raw>(held + c * kTile + in_tile)), v);
      MK_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        scale[j] = device::Fma(v[j] - mean[j], v[j] - mean[j], scale[j]);
      }
    }
    Sum(scale, thread, totals + kWarps * kTile);
    MK_UNROLL
    for (int j = 0; j < kWidth; ++j) scale[j] = 1.0f / device::Sqrt(scale[j] / count + p.epsilon);

    MK_NO_UNROLL
    for (int c = thread / kLanes; c < channels; c += kRows) {
      float v[kWidth];
      Piece<kWidth>::ToFloats(device::Load(device::As<Raw>(held + c * kTile + in_tile)), v);
      const float weight = device::Load(p.weight + c);
      const float bias = p.bias != nullptr ? device::Load(p.bias + c) : 0.0f;
      MK_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        v[j] = device::Fma((v[j] - mean[j]) * scale[j], weight, bias);
      }
      device::Activate(p.activation, v);
      device::Store(device::As<Raw>(p.y + begin + c * p.positions), Piece<kWidth>::ToRaw(v));
    }
  }
};

}  // namespace
}  // namespace mk

#define MK_CHANNEL_NORM_F16(name, width, tile)                            \
  extern "C" __global__ void __launch_bounds__(256)                       \
      mk_channel_norm_f16_##name(const mk::ChannelNormF16Launch launch) { \
    mk::ChannelTile<width, tile>::Norm(launch);                           \
  }

MK_CHANNEL_NORM_F16(tile64, 8, 64)
MK_CHANNEL_NORM_F16(tile16, 8, 16)
MK_CHANNEL_NORM_F16(pairs, 2, 16)
MK_CHANNEL_NORM_F16(any, 1, 16)
