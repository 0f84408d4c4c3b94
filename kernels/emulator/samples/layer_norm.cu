// LayerNorm, a warp per row: mean, then the centred sum of squares, each by shuffles; the row stays
// in registers.
//
// Grid: ceil(rows / 8). Block: 256 threads, 8 rows. No shared memory. Lane l has channels l, l +
// 32, ...: consecutive lanes read consecutive words. Moves 4 (2 rows C) bytes, and weight and bias,
// 8 C, once per row (from L1).
#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/warp.h"
#include "kernels/emulator/samples/samples_params.h"

namespace mk {
namespace samples {
namespace {

constexpr int kRowsPerBlock = 8;
constexpr int kMaxPerLane = 32;

}  // namespace
}  // namespace samples
}  // namespace mk

extern "C" __global__ void __launch_bounds__(256)
    mk_sample_layer_norm(const mk::samples::LayerNormParams p) {
  using namespace mk::device;
  using namespace mk::samples;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int row =
      static_cast<int>(blockIdx.x) * kRowsPerBlock + static_cast<int>(threadIdx.x) / kWarpSize;
  if (row >= p.rows) return;  // the whole warp
  const float* x = p.x + static_cast<mk_i64>(row) * p.channels;
  float* y = p.y + static_cast<mk_i64>(row) * p.channels;

  float v[kMaxPerLane];
  float sum = 0.0f;
  MK_UNROLL
  for (int i = 0; i < kMaxPerLane; ++i) {
    const int c = i * kWarpSize + lane;
    v[i] = c < p.channels ? Load(x + c) : 0.0f;
    sum += v[i];
  }
  const float mean = WarpSum(sum) / static_cast<float>(p.channels);
  float squares = 0.0f;
  MK_UNROLL
  for (int i = 0; i < kMaxPerLane; ++i) {
    const float d = i * kWarpSize + lane < p.channels ? v[i] - mean : 0.0f;
    squares += d * d;
  }
  const float scale = 1.0f / Sqrt(WarpSum(squares) / static_cast<float>(p.channels) + p.epsilon);
  MK_UNROLL
  for (int i = 0; i < kMaxPerLane; ++i) {
    const int c = i * kWarpSize + lane;
    if (c < p.channels) Store(y + c, (v[i] - mean) * scale * Load(p.weight + c) + Load(p.bias + c));
  }
}
