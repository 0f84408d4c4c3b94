// Output positions in strips of four along a row: a weight is loaded once for the four, and each
// of the six columns under them serves up to three.
#include "kernels/conv/depthwise3x3_simd.h"

#include "kernels/simd/vec_math.h"

namespace mk::simd::MK_SIMD_ISA {
namespace {

constexpr mk_i64 kLanes = F32::kLanes;
constexpr int kStrip = 4;

// The columns under `kWidth` neighbouring outputs: in[u][v] are the channels at input row u, column
// v, both counted from the upper left of the first output's window.
template <int kWidth>
struct Window {
  const float* in[3][kWidth + 2];
};

// Channels [c, c + count) of kWidth outputs. The taps are summed in the same order for every width.
template <Activation kActivation, int kWidth, bool kWhole>
MK_SIMD_INLINE void Combine(const Window<kWidth>& window, const Depthwise3x3Params& p, float* y,
                            mk_i64 c, mk_i64 count) {
  F32 sum[kWidth];
  for (int o = 0; o < kWidth; ++o) sum[o] = F32::Set(0.0f);
  for (int u = 0; u < 3; ++u) {
    for (int v = 0; v < 3; ++v) {
      const F32 weight = LoadPart<F32, kWhole>(p.weight + (u * 3 + v) * p.channels + c, count);
      for (int o = 0; o < kWidth; ++o) {
        sum[o] = MulAdd(LoadPart<F32, kWhole>(window.in[u][v + o] + c, count), weight, sum[o]);
      }
    }
  }
  for (int o = 0; o < kWidth; ++o) {
    StorePart<kWhole>(Activate<kActivation>(sum[o]), y + o * p.channels + c, count);
  }
}

// Outputs [j, j + kWidth) of row i.
template <Activation kActivation, int kWidth>
MK_SIMD_INLINE void Strip(const Depthwise3x3Params& p, const float* zeros, mk_i64 i, mk_i64 j) {
  Window<kWidth> window;
  for (int u = 0; u < 3; ++u) {
    const mk_i64 row = i + u - 1;
    const bool row_inside = row >= 0 && row < p.height;
    for (int v = 0; v < kWidth + 2; ++v) {
      const mk_i64 column = j + v - 1;
      const bool inside = row_inside && column >= 0 && column < p.width;
      window.in[u][v] = inside ? p.x + (row * p.width + column) * p.channels : zeros;
    }
  }
  float* y = p.y + (i * p.width + j) * p.channels;
  mk_i64 c = 0;
  for (; c + kLanes <= p.channels; c += kLanes) {
    Combine<kActivation, kWidth, true>(window, p, y, c, kLanes);
  }
  if (c < p.channels) Combine<kActivation, kWidth, false>(window, p, y, c, p.channels - c);
}

template <Activation kActivation>
void Rows(const Depthwise3x3Params& p, const float* zeros, mk_i64 begin, mk_i64 end) {
  for (mk_i64 i = begin; i < end; ++i) {
    mk_i64 j = 0;
    for (; j + kStrip <= p.width; j += kStrip) Strip<kActivation, kStrip>(p, zeros, i, j);
    for (; j < p.width; ++j) Strip<kActivation, 1>(p, zeros, i, j);
  }
}

}  // namespace

void DepthwiseRows(const Depthwise3x3Params& p, const float* zeros, mk_i64 begin, mk_i64 end) {
  switch (p.activation) {
    case Activation::kNone:
      return Rows<Activation::kNone>(p, zeros, begin, end);
    case Activation::kRelu:
      return Rows<Activation::kRelu>(p, zeros, begin, end);
    case Activation::kGelu:
      return Rows<Activation::kGelu>(p, zeros, begin, end);
    case Activation::kSilu:
      return Rows<Activation::kSilu>(p, zeros, begin, end);
  }
}

}  // namespace mk::simd::MK_SIMD_ISA
