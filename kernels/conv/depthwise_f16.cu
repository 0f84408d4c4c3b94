// A depthwise convolution: a thread makes four outputs that lie side by side, of four channels (or
// one). A row of the window under them is side + 3 columns, each of which serves up to `side`
// outputs, and each weight serves four.
//
// Grid: ceil(height ceil(width / 4) groups / 256), groups = channels / 4 ("one": channels). Block:
// 256 threads. Consecutive threads take consecutive channels: a warp reads 256 bytes in a row.
// No shared memory: the rows above and below come from L1, for which this asks 4.5 times per output
// in place of 9 (side 3; side 7: 17.5 of 49).
#include "kernels/conv/depthwise_f16_params.h"
#include "kernels/device/device.h"
#include "kernels/device/half8.h"
#include "kernels/device/memory.h"
#include "kernels/math/activation_device.h"

namespace mk {
namespace {

using device::half;

constexpr int kThreads = 256;
constexpr int kStrip = 4;

template <int kChannels>
MK_DEVICE void ReadHalves(const half* p, float (&v)[kChannels]) {
  using namespace device;
  if constexpr (kChannels == 4) {
    const Words2 words = Load(As<Words2>(p));
    v[0] = LowHalf(words.word[0]), v[1] = HighHalf(words.word[0]);
    v[2] = LowHalf(words.word[1]), v[3] = HighHalf(words.word[1]);
  } else {
    v[0] = ToFloat(Load(p));
  }
}

template <int kChannels>
MK_DEVICE void WriteHalves(half* p, const float (&v)[kChannels]) {
  using namespace device;
  if constexpr (kChannels == 4) {
    Store(As<Words2>(p), Words2{{PackHalf2(v[0], v[1]), PackHalf2(v[2], v[3])}});
  } else {
    Store(p, ToHalf(v[0]));
  }
}

template <int kChannels>
MK_DEVICE void ReadFloats(const float* p, float (&v)[kChannels]) {
  using namespace device;
  if constexpr (kChannels == 4) {
    const Float4 f = Load(As<Float4>(p));
    v[0] = f.x, v[1] = f.y, v[2] = f.z, v[3] = f.w;
  } else {
    v[0] = Load(p);
  }
}

template <int kSide, int kChannels>
MK_DEVICE void Convolve(const DepthwiseF16Params& p) {
  constexpr int kRadius = kSide / 2;
  constexpr int kColumns = kStrip + kSide - 1;
  // The product of the three counts is below 2^31 by CheckDepthwiseF16.
  const mk_u32 groups = static_cast<mk_u32>(p.channels) / kChannels;
  const mk_u32 strips = (static_cast<mk_u32>(p.width) + kStrip - 1) / kStrip;
  const mk_u32 index = blockIdx.x * kThreads + threadIdx.x;
  const mk_u32 strip_index = index / groups;
  const int c = static_cast<int>(index % groups) * kChannels;
  const int i = static_cast<int>(strip_index / strips);
  const int j = static_cast<int>(strip_index % strips) * kStrip;
  if (i >= p.height) return;

  float sum[kStrip][kChannels] = {};
  if (p.bias != nullptr) {
    MK_UNROLL
    for (int o = 0; o < kStrip; ++o) ReadFloats(p.bias + c, sum[o]);
  }
  MK_NO_UNROLL
  for (int u = 0; u < kSide; ++u) {
    const int row = i + u - kRadius;
    if (row < 0 || row >= p.height) continue;
    const half* const x = p.x + static_cast<mk_i64>(row) * p.width * p.channels + c;
    float in[kColumns][kChannels];
    MK_UNROLL
    for (int v = 0; v < kColumns; ++v) {
      const int column = j + v - kRadius;
      MK_UNROLL
      for (int k = 0; k < kChannels; ++k) in[v][k] = 0.0f;
      if (column >= 0 && column < p.width) {
        ReadHalves(x + static_cast<mk_i64>(column) * p.channels, in[v]);
      }
    }
    MK_UNROLL
    for (int v = 0; v < kSide; ++v) {
      float weight[kChannels];
      ReadFloats(p.weight + (u * kSide + v) * static_cast<mk_i64>(p.channels) + c, weight);
      MK_UNROLL
      for (int o = 0; o < kStrip; ++o) {
        MK_UNROLL
        for (int k = 0; k < kChannels; ++k) {
          sum[o][k] = device::Fma(in[v + o][k], weight[k], sum[o][k]);
        }
      }
    }
  }
  half* const y = p.y + (static_cast<mk_i64>(i) * p.width + j) * p.channels + c;
  MK_UNROLL
  for (int o = 0; o < kStrip; ++o) {
    if (j + o >= p.width) continue;
    device::Activate(p.activation, sum[o]);
    WriteHalves(y + static_cast<mk_i64>(o) * p.channels, sum[o]);
  }
}

}  // namespace
}  // namespace mk

extern "C" __global__ void __launch_bounds__(256)
    mk_depthwise_f16_side3_four(const mk::DepthwiseF16Params p) {
  mk::Convolve<3, 4>(p);
}
extern "C" __global__ void __launch_bounds__(256)
    mk_depthwise_f16_side3_one(const mk::DepthwiseF16Params p) {
  mk::Convolve<3, 1>(p);
}
extern "C" __global__ void __launch_bounds__(256)
    mk_depthwise_f16_side7_four(const mk::DepthwiseF16Params p) {
  mk::Convolve<7, 4>(p);
}
extern "C" __global__ void __launch_bounds__(256)
    mk_depthwise_f16_side7_one(const mk::DepthwiseF16Params p) {
  mk::Convolve<7, 1>(p);
}
