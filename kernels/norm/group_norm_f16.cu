// GroupNorm of fp16 maps, channel-first. The elements of a group follow each other in memory: a
// "row". The mean first, then the squares about it, then the result.
//
// warp: a row of up to 1024 elements in shared memory, a warp each; shuffles, no barrier.
// Grid: ceil(rows / 8). Block: 256 threads. Shared memory: 16 KB.
// block: a row of up to 16384 elements in shared memory; a barrier for each of the two sums.
// Grid: rows. Block: 512 threads. Shared memory: 32.1 KB, so that three blocks fill an SM of
// sm_87.
// statistics, apply: longer rows by slices of 8192 elements: each block leaves the sum of its slice
// and the squares about the slice's mean; then each block merges those of its row, all in the same
// order, and reads its slice again. Grid: rows slices. Block: 256 threads. Shared memory: 16.1 KB,
// 64 bytes. No block waits for another, and no atomics: the same bits each time.
//
// Shared memory and not registers, so that the loops need not be unrolled: activations unrolled for
// a row in registers make 86 KiB of code (layer_norm_f16.cu, chunks4). What a thread keeps there
// only it reads again.
//
// Asks for 4 bytes an element (with a residual 6, with its sum 8; see group_norm_f16.h for two
// launches), for 8 bytes of weights for each piece of 8 elements of one channel ("any": for each
// element), which come from L1, and in `apply` for 16 bytes for each slice of its row, twice 8.
#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/warp.h"
#include "kernels/math/activation_device.h"
#include "kernels/norm/group_norm_f16_params.h"
#include "kernels/norm/piece_device.h"

namespace mk {
namespace {

using device::Float2;
using device::half;
using device::kWarpSize;
using device::Piece;

constexpr int kWarpRow = 1024;  // elements
constexpr int kBlockRow = 16384;
constexpr int kSlice = 8192;
constexpr int kWarpThreads = 256;
constexpr int kBlockThreads = 512;
constexpr int kSliceThreads = 256;

// Who shares a row or a slice. Sum gives every lane the same bits. A block has two sums, each with
// a float per warp in `totals`, so that the second need not wait until the first was read.
struct WarpTeam {
  static constexpr int kLanes = kWarpSize;
  int lane;
  template <int kWhich>
  MK_DEVICE float Sum(float value, float* /*totals*/ MK_SITE) const {
    return device::WarpSum(value MK_PASS_SITE);
  }
};

template <int kThreads>
struct BlockTeam {
  static constexpr int kLanes = kThreads;
  static constexpr int kWarps = kThreads / kWarpSize;
  int lane;
  template <int kWhich>
  MK_DEVICE float Sum(float value, float* totals MK_SITE) const {
    float* const sums = totals + kWhich * kWarps;
    const float mine = device::WarpSum(value MK_PASS_SITE);
    const int in_warp = lane % kWarpSize;
    if (in_warp == 0) device::Store(sums + lane / kWarpSize, mine);
    device::SyncThreads(MK_PASS_ONLY_SITE);  // the sums of all warps are there
    return device::WarpSum(in_warp < kWarps ? device::Load(sums + in_warp) : 0.0f MK_PASS_SITE);
  }
};

// The sum of the `count` elements from `begin` on, and their squares about their mean; keeps them
// in `held`.
template <int kWidth, class Team>
MK_DEVICE Float2 Moments(const GroupNormF16Params& p, mk_i64 begin, int count, half* held,
                         float* totals, const Team& team) {
  using Raw = typename Piece<kWidth>::Raw;
  float sum = 0.0f;
  for (int e = team.lane * kWidth; e < count; e += Team::kLanes * kWidth) {
    const Raw raw = device::ReadNormed<kWidth>(p, begin + e, true);
    device::Store(device::As<Raw>(held + e), raw);
    sum += device::PieceSum<kWidth>(raw);
  }
  sum = team.template Sum<0>(sum, totals);
  const float mean = sum / static_cast<float>(count);
  float squares = 0.0f;
  for (int e = team.lane * kWidth; e < count; e += Team::kLanes * kWidth) {
    squares += device::PieceSquares<kWidth>(device::Load(device::As<Raw>(held + e)), mean);
  }
  return {sum, team.template Sum<1>(squares, totals)};
}

MK_DEVICE float ScaleOf(const GroupNormF16Params& p, float squares, float count) {
  return 1.0f / device::Sqrt(squares / count + p.epsilon);
}

// y of the piece `raw` at element e of the row that begins at `begin` with `channel`.
template <int kWidth>
MK_DEVICE void WriteResult(const GroupNormF16Params& p, mk_i64 begin, mk_i64 channel, int e,
                           const typename Piece<kWidth>::Raw& raw, float mean, float scale) {
  using Raw = typename Piece<kWidth>::Raw;
  const mk_u32 positions = static_cast<mk_u32>(p.positions);
  const mk_u32 first = static_cast<mk_u32>(e) / positions;
  mk_u32 position = static_cast<mk_u32>(e) - first * positions;
  mk_i64 c = channel + first;
  float weight = device::Load(p.weight + c);
  float bias = p.bias != nullptr ? device::Load(p.bias + c) : 0.0f;
  float v[kWidth];
  Piece<kWidth>::ToFloats(raw, v);
  MK_UNROLL
  for (int j = 0; j < kWidth; ++j) {
    if (j > 0 && position == positions) {  // the piece goes on in the next channel
      position = 0;
      ++c;
      weight = device::Load(p.weight + c);
      if (p.bias != nullptr) bias = device::Load(p.bias + c);
    }
    v[j] = device::Fma((v[j] - mean) * scale, weight, bias);
    ++position;
  }
  device::Activate(p.activation, v);
  device::Store(device::As<Raw>(p.y + begin + e), Piece<kWidth>::ToRaw(v));
}

MK_DEVICE mk_i64 FirstChannel(const GroupNormF16Launch& launch, mk_i64 row) {
  return static_cast<mk_u32>(row) % static_cast<mk_u32>(launch.p.groups) * launch.row_channels;
}

template <int kWidth, class Team>
MK_DEVICE void NormRow(const GroupNormF16Launch& launch, mk_i64 row, half* held, float* totals,
                       const Team& team) {
  using Raw = typename Piece<kWidth>::Raw;
  const int count = static_cast<int>(launch.row_elements);
  const mk_i64 begin = row * launch.row_elements;
  const mk_i64 channel = FirstChannel(launch, row);
  const Float2 moments = Moments<kWidth>(launch.p, begin, count, held, totals, team);
  const float mean = moments.x / static_cast<float>(count);
  const float scale = ScaleOf(launch.p, moments.y, static_cast<float>(count));
  MK_NO_UNROLL
  for (int e = team.lane * kWidth; e < count; e += Team::kLanes * kWidth) {
    const Raw raw = device::Load(device::As<Raw>(held + e));
    WriteResult<kWidth>(launch.p, begin, channel, e, raw, mean, scale);
  }
}

template <int kWidth>
MK_DEVICE void NormByWarp(const GroupNormF16Launch& launch) {
  constexpr int kRows = kWarpThreads / kWarpSize;
  MK_SHARED(half, held, kRows * kWarpRow);
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const mk_i64 row = static_cast<mk_i64>(blockIdx.x) * kRows + warp;
  if (row >= launch.rows) return;  // the whole warp
  const WarpTeam team = {static_cast<int>(threadIdx.x) % kWarpSize};
  NormRow<kWidth>(launch, row, held + warp * kWarpRow, nullptr, team);
}

template <int kWidth>
MK_DEVICE void NormByBlock(const GroupNormF16Launch& launch) {
  using Team = BlockTeam<kBlockThreads>;
  MK_SHARED(half, held, kBlockRow);
  MK_SHARED(float, totals, 2 * Team::kWarps);
  NormRow<kWidth>(launch, blockIdx.x, held, totals, Team{static_cast<int>(threadIdx.x)});
}

struct Slice {
  mk_i64 row;
  int index, first, count;  // of the row's elements
};

MK_DEVICE int SliceCount(const GroupNormF16Launch& launch, int index) {
  return device::Min(kSlice, static_cast<int>(launch.row_elements) - index * kSlice);
}

MK_DEVICE Slice MySlice(const GroupNormF16Launch& launch) {
  const mk_u32 slices = static_cast<mk_u32>(launch.slices);
  const mk_u32 row = blockIdx.x / slices;
  const int index = static_cast<int>(blockIdx.x - row * slices);
  return {row, index, index * kSlice, SliceCount(launch, index)};
}

template <int kWidth>
MK_DEVICE void SliceStatistics(const GroupNormF16Launch& launch) {
  using Team = BlockTeam<kSliceThreads>;
  MK_SHARED(half, held, kSlice);
  MK_SHARED(float, totals, 2 * Team::kWarps);
  const Slice slice = MySlice(launch);
  const Team team = {static_cast<int>(threadIdx.x)};
  const Float2 moments = Moments<kWidth>(launch.p, slice.row * launch.row_elements + slice.first,
                                         slice.count, held, totals, team);
  if (team.lane == 0) {
    device::Store(device::As<Float2>(launch.partials) + static_cast<mk_i64>(blockIdx.x), moments);
  }
}

// The moments of a row from those of its slices: the squares about the row's mean are those about
// the slice's, and the slice's distance squared as often as it has elements.
template <class Team>
MK_DEVICE Float2 Merge(const GroupNormF16Launch& launch, mk_i64 row, float* totals,
                       const Team& team) {
  const Float2* const partials = device::As<Float2>(launch.partials) + row * launch.slices;
  const int slices = static_cast<int>(launch.slices);
  float sum = 0.0f;
  for (int i = team.lane; i < slices; i += Team::kLanes) sum += device::Load(partials + i).x;
  sum = team.template Sum<0>(sum, totals);
  const float mean = sum / static_cast<float>(launch.row_elements);
  float squares = 0.0f;
  for (int i = team.lane; i < slices; i += Team::kLanes) {
    const Float2 partial = device::Load(partials + i);
    const float count = static_cast<float>(SliceCount(launch, i));
    const float distance = partial.x / count - mean;
    squares += device::Fma(count * distance, distance, partial.y);
  }
  return {sum, team.template Sum<1>(squares, totals)};
}

template <int kWidth>
MK_DEVICE void NormSlice(const GroupNormF16Launch& launch) {
  using Team = BlockTeam<kSliceThreads>;
  MK_SHARED(float, totals, 2 * Team::kWarps);
  const Slice slice = MySlice(launch);
  const Team team = {static_cast<int>(threadIdx.x)};
  const Float2 moments = Merge(launch, slice.row, totals, team);
  const float elements = static_cast<float>(launch.row_elements);
  const float mean = moments.x / elements;
  const float scale = ScaleOf(launch.p, moments.y, elements);
  const mk_i64 begin = slice.row * launch.row_elements;
  const mk_i64 channel = FirstChannel(launch, slice.row);
  MK_NO_UNROLL
  for (int i = team.lane * kWidth; i < slice.count; i += Team::kLanes * kWidth) {
    const int e = slice.first + i;
    WriteResult<kWidth>(launch.p, begin, channel, e,
                        device::ReadNormed<kWidth>(launch.p, begin + e, false), mean, scale);
  }
}

}  // namespace
}  // namespace mk

#define MK_GROUP_NORM_F16(name, threads, ...)                         \
  extern "C" __global__ void __launch_bounds__(threads)               \
      mk_group_norm_f16_##name(const mk::GroupNormF16Launch launch) { \
    mk::__VA_ARGS__(launch);                                          \
  }

MK_GROUP_NORM_F16(warp, 256, NormByWarp<8>)
MK_GROUP_NORM_F16(warp_any, 256, NormByWarp<1>)
MK_GROUP_NORM_F16(block, 512, NormByBlock<8>)
MK_GROUP_NORM_F16(block_any, 512, NormByBlock<1>)
MK_GROUP_NORM_F16(statistics, 256, SliceStatistics<8>)
MK_GROUP_NORM_F16(statistics_any, 256, SliceStatistics<1>)
MK_GROUP_NORM_F16(apply, 256, NormSlice<8>)
MK_GROUP_NORM_F16(apply_any, 256, NormSlice<1>)
