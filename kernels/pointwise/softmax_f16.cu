// Softmax of fp16 rows, a warp each: the row stays in registers ("chunk", "chunks4"), or is read
// three times, from L1 but for the first while it is short ("wide" by eights, "any" one by one).
//
// Grid: ceil(rows / 8). Block: 256 threads. No shared memory, no barrier. Asks for 4 rows columns
// bytes, the last two for twice as much again of x.
#include "kernels/device/device.h"
#include "kernels/device/half8.h"
#include "kernels/device/memory.h"
#include "kernels/device/warp.h"
#include "kernels/pointwise/softmax_f16_params.h"

namespace mk {
namespace {

using device::half;
using device::kWarpSize;
using device::Words4;

constexpr int kThreads = 256;
constexpr int kChunk = 8;
constexpr float kLog2E = 1.44269504f;

MK_DEVICE float Lowest() { return device::FloatFromBits(0xff800000u); }

// e^(v - most), and 0 only where that is too small.
MK_DEVICE float ExpBelow(float v, float most) { return device::Exp2Approx((v - most) * kLog2E); }

template <int kCount>
MK_DEVICE void ReadScaled(const SoftmaxF16Params& p, mk_i64 at, float (&v)[kCount]) {
  using namespace device;
  if constexpr (kCount == kChunk) {
    Unpack(Load(As<Words4>(p.x + at)), v);
  } else {
    v[0] = ToFloat(Load(p.x + at));
  }
  MK_UNROLL
  for (int i = 0; i < kCount; ++i) v[i] *= p.scale;
}

template <int kCount>
MK_DEVICE void Write(half* y, const float (&v)[kCount]) {
  using namespace device;
  if constexpr (kCount == kChunk) {
    Store(As<Words4>(y), Pack(v));
  } else {
    Store(y, ToHalf(v[0]));
  }
}

MK_DEVICE mk_i64 RowOfWarp() {
  return static_cast<mk_i64>(blockIdx.x) * (kThreads / kWarpSize) +
         static_cast<int>(threadIdx.x) / kWarpSize;
}

template <int kChunks>
MK_DEVICE void InRegisters(const SoftmaxF16Params& p) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const mk_i64 row = RowOfWarp();
  if (row >= p.rows) return;  // the whole warp
  const int columns = static_cast<int>(p.columns);
  float v[kChunks][kChunk];
  float most = Lowest();
  MK_UNROLL
  for (int i = 0; i < kChunks; ++i) {
    const int c = (i * kWarpSize + lane) * kChunk;
    MK_UNROLL
    for (int j = 0; j < kChunk; ++j) v[i][j] = Lowest();
    if (c < columns) ReadScaled(p, row * p.columns + c, v[i]);
    MK_UNROLL
    for (int j = 0; j < kChunk; ++j) most = device::Max(most, v[i][j]);
  }
  most = device::WarpMax(most);
  float sum = 0.0f;
  MK_UNROLL
  for (int i = 0; i < kChunks; ++i) {
    if ((i * kWarpSize + lane) * kChunk >= columns) continue;
    MK_UNROLL
    for (int j = 0; j < kChunk; ++j) {
      v[i][j] = ExpBelow(v[i][j], most);
      sum += v[i][j];
    }
  }
  const float scale = 1.0f / device::WarpSum(sum);
  MK_UNROLL
  for (int i = 0; i < kChunks; ++i) {
    const int c = (i * kWarpSize + lane) * kChunk;
    if (c >= columns) continue;
    MK_UNROLL
    for (int j = 0; j < kChunk; ++j) v[i][j] *= scale;
    Write(p.y + row * p.columns + c, v[i]);
  }
}

template <int kCount>
MK_DEVICE void FromMemory(const SoftmaxF16Params& p) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const mk_i64 row = RowOfWarp();
  if (row >= p.rows) return;  // the whole warp
  const mk_i64 at = row * p.columns;
  const int columns = static_cast<int>(p.columns);
  float v[kCount];
  float most = Lowest();
  for (int c = lane * kCount; c < columns; c += kWarpSize * kCount) {
    ReadScaled(p, at + c, v);
    MK_UNROLL
    for (int j = 0; j < kCount; ++j) most = device::Max(most, v[j]);
  }
  most = device::WarpMax(most);
  float sum = 0.0f;
  for (int c = lane * kCount; c < columns; c += kWarpSize * kCount) {
    ReadScaled(p, at + c, v);
    MK_UNROLL
    for (int j = 0; j < kCount; ++j) sum += ExpBelow(v[j], most);
  }
  const float scale = 1.0f / device::WarpSum(sum);
  for (int c = lane * kCount; c < columns; c += kWarpSize * kCount) {
    ReadScaled(p, at + c, v);
    MK_UNROLL
    for (int j = 0; j < kCount; ++j) v[j] = ExpBelow(v[j], most) * scale;
    Write(p.y + at + c, v);
  }
}

}  // namespace
}  // namespace mk

extern "C" __global__ void __launch_bounds__(256)
    mk_softmax_f16_chunk(const mk::SoftmaxF16Params p) {
  mk::InRegisters<1>(p);
}
extern "C" __global__ void __launch_bounds__(256)
    mk_softmax_f16_chunks4(const mk::SoftmaxF16Params p) {
  mk::InRegisters<4>(p);
}
extern "C" __global__ void __launch_bounds__(256)
    mk_softmax_f16_wide(const mk::SoftmaxF16Params p) {
  mk::FromMemory<8>(p);
}
extern "C" __global__ void __launch_bounds__(256) mk_softmax_f16_any(const mk::SoftmaxF16Params p) {
  mk::FromMemory<1>(p);
}
