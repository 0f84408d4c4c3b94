// The mean of fp16 rows, normed first where there are weights.
//
// pairs, any: a block for 64 rows. First, with a norm, a warp per row finds mean and scale; then a
// thread per pair of channels ("any": per channel) goes down the rows, which are in L1 now.
// Grid: ceil(rows / 64). Block: 512 threads. Shared memory: 512 bytes. Asks for 2 rows channels
// bytes of x; for a norm three times that, of which two come from L1 (64 rows of 768 channels are
// 96 KB).
//
// combine: a block for 32 channels; its 8 warps take every eighth group, and the first adds up
// their sums. Grid: ceil(channels / 32). Block: 256 threads. Shared memory: 1 KB.
#include "kernels/device/device.h"
#include "kernels/device/half8.h"
#include "kernels/device/memory.h"
#include "kernels/device/warp.h"
#include "kernels/pool/global_average_pool_f16_params.h"

namespace mk {
namespace {

using device::half;
using device::kWarpSize;

constexpr int kThreads = 512;
constexpr int kGroup = 64;  // rows
constexpr int kCombineWarps = 8;

template <int kWidth>
MK_DEVICE void Read(const half* p, float (&v)[kWidth]) {
  if constexpr (kWidth == 2) {
    const mk_u32 pair = device::Load(device::As<mk_u32>(p));
    v[0] = device::LowHalf(pair);
    v[1] = device::HighHalf(pair);
  } else {
    v[0] = device::ToFloat(device::Load(p));
  }
}

// A warp over the row at `row`.
template <int kWidth>
MK_DEVICE void RowStatistics(const GlobalAveragePoolF16Params& p, const half* row, int lane,
                             float* mean, float* scale) {
  const int channels = static_cast<int>(p.channels);
  const float count = static_cast<float>(channels);
  float v[kWidth];
  float sum = 0.0f;
  for (int c = lane * kWidth; c < channels; c += kWarpSize * kWidth) {
    Read(row + c, v);
    MK_UNROLL
    for (int j = 0; j < kWidth; ++j) sum += v[j];
  }
  *mean = device::WarpSum(sum) / count;
  float squares = 0.0f;
  for (int c = lane * kWidth; c < channels; c += kWarpSize * kWidth) {
    Read(row + c, v);
    MK_UNROLL
    for (int j = 0; j < kWidth; ++j) squares += (v[j] - *mean) * (v[j] - *mean);
  }
  *scale = 1.0f / device::Sqrt(device::WarpSum(squares) / count + p.epsilon);
}

MK_DEVICE void StoreMean(const GlobalAveragePoolF16Params& p, int c, float sum) {
  float y = sum / static_cast<float>(p.rows);
  if (p.weight != nullptr) {
    y = device::Fma(y, device::Load(p.weight + c), device::Load(p.bias + c));
  }
  device::Store(p.y + c, device::ToHalf(y));
}

template <int kWidth>
MK_DEVICE void PoolGroup(const GlobalAveragePoolF16Launch& launch) {
  const GlobalAveragePoolF16Params& p = launch.p;
  MK_SHARED(float, means, kGroup);
  MK_SHARED(float, scales, kGroup);
  const int thread = static_cast<int>(threadIdx.x);
  const mk_i64 first = static_cast<mk_i64>(blockIdx.x) * kGroup;
  const int rows = static_cast<int>(device::Min<mk_i64>(kGroup, p.rows - first));
  const half* const x = p.x + first * p.channels;
  if (p.weight != nullptr) {
    const int lane = thread % kWarpSize;
    for (int r = thread / kWarpSize; r < rows; r += kThreads / kWarpSize) {
      float mean, scale;
      RowStatistics<kWidth>(p, x + r * p.channels, lane, &mean, &scale);
      if (lane == 0) {
        device::Store(means + r, mean);
        device::Store(scales + r, scale);
      }
    }
    device::SyncThreads();  // the statistics of all rows are there
  }
  const int channels = static_cast<int>(p.channels);
  for (int c = thread * kWidth; c < channels; c += kThreads * kWidth) {
    float sum[kWidth] = {};
    for (int r = 0; r < rows; ++r) {
      float v[kWidth];
      Read(x + r * p.channels + c, v);
      if (p.weight != nullptr) {
        const float mean = device::Load(means + r);
        const float scale = device::Load(scales + r);
        MK_UNROLL
        for (int j = 0; j < kWidth; ++j) v[j] = (v[j] - mean) * scale;
      }
      MK_UNROLL
      for (int j = 0; j < kWidth; ++j) sum[j] += v[j];
    }
    if (launch.groups == 1) {
      MK_UNROLL
      for (int j = 0; j < kWidth; ++j) StoreMean(p, c + j, sum[j]);
      continue;
    }
    float* const partials = launch.partials + blockIdx.x * p.channels + c;
    if constexpr (kWidth == 2) {
      device::Store(device::As<device::Float2>(partials), device::Float2{sum[0], sum[1]});
    } else {
      device::Store(partials, sum[0]);
    }
  }
}

}  // namespace
}  // namespace mk

extern "C" __global__ void __launch_bounds__(512)
    mk_global_average_pool_f16_pairs(const mk::GlobalAveragePoolF16Launch launch) {
  mk::PoolGroup<2>(launch);
}

extern "C" __global__ void __launch_bounds__(512)
    mk_global_average_pool_f16_any(const mk::GlobalAveragePoolF16Launch launch) {
  mk::PoolGroup<1>(launch);
}

extern "C" __global__ void __launch_bounds__(256)
    mk_global_average_pool_f16_combine(const mk::GlobalAveragePoolF16Launch launch) {
  using namespace mk;
  MK_SHARED(float, sums, kCombineWarps* kWarpSize);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int c = static_cast<int>(blockIdx.x) * kWarpSize + lane;
  const bool inside = c < launch.p.channels;
  float sum = 0.0f;
  if (inside) {
    for (mk_i64 g = warp; g < launch.groups; g += kCombineWarps) {
      sum += device::Load(launch.partials + g * launch.p.channels + c);
    }
  }
  device::Store(sums + warp * kWarpSize + lane, sum);
  device::SyncThreads();  // the sums of all warps are there
  if (warp != 0 || !inside) return;
  for (int w = 1; w < kCombineWarps; ++w) sum += device::Load(sums + w * kWarpSize + lane);
  StoreMean(launch.p, c, sum);
}
