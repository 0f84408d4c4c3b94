// Mean and sum of squared differences of each row, a warp per row: row_stats_f16.h.
//
// Grid: ceil(rows / 8). Block: 256 threads, 8 rows. No shared memory, no barrier. A lane has 8
// consecutive channels of every 256, by 16 bytes where rows are aligned to them. The row is read
// twice, the second time from L1: 2 (2 rows channels) bytes asked for, 8 rows stored.
#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/warp.h"
#include "kernels/linear/load_f16.h"
#include "kernels/linear/row_stats_f16_params.h"

namespace mk {
namespace device {
namespace {

constexpr int kRowsPerBlock = 8;
constexpr int kLaneChannels = 8;

// sum of f(x[c]) over the lane's channels.
template <class Function>
MK_DEVICE float LaneSum(const half* row, int channels, bool by_chunks, int lane, Function f) {
  float sum = 0.0f;
  for (int c = lane * kLaneChannels; c < channels; c += kWarpSize * kLaneChannels) {
    const int count = Min(channels - c, kLaneChannels);
    const Words4 words = by_chunks ? Load(As<Words4>(row + c)) : LoadHalves(row + c, count);
    MK_UNROLL
    for (int i = 0; i < kLaneChannels; ++i) {
      if (i < count) sum += f(HalfOf(words, i));
    }
  }
  return sum;
}

}  // namespace
}  // namespace device
}  // namespace mk

extern "C" __global__ void __launch_bounds__(256) mk_row_stats_f16(const mk::RowStatsF16Params p) {
  using namespace mk::device;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const mk_i64 row = static_cast<mk_i64>(blockIdx.x) * kRowsPerBlock + threadIdx.x / kWarpSize;
  if (row >= p.rows) return;  // the whole warp
  const int channels = static_cast<int>(p.channels);
  const half* x = p.x + row * p.channels;
  const bool by_chunks = MovesByChunks(p.x, p.channels);

  const float sum = LaneSum(x, channels, by_chunks, lane, [](float v) { return v; });
  const float mean = WarpSum(sum) / static_cast<float>(channels);
  const float squares =
      LaneSum(x, channels, by_chunks, lane, [mean](float v) { return (v - mean) * (v - mean); });
  const float m2 = WarpSum(squares);
  if (lane == 0) Store(p.stats + row, mk::RowStats{mean, m2});
}
