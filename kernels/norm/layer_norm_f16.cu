// LayerNorm of fp16 rows: a row stays in the registers of kLanes lanes, as kChunks pieces of 8
// channels each; mean, then the centred sum of squares, by shuffles. No shared memory, no barrier.
//
// Grid: ceil(rows / (256 / kLanes)). Block: 256 threads. Lane l of a row has the channels
// 8 (l + kLanes i) and the 7 behind them: lanes that follow each other read 16 bytes each that do
// too. Rows of up to 64 and 128 channels take 8 and 16 lanes, so that VMamba-T's 96 keeps 24 of 32
// lanes busy and not 12. Rows that no register file holds ("wide"), and rows of any count of
// channels ("any"), are read three times by a warp each, from L1 but for the first: at most 8 KB.
//
// Asks for 4 rows C bytes (with a residual 8 rows C; wide and any read x twice more) and, per row,
// 8 C of weights, which are in L1 for all but a block's first rows.
#include "kernels/device/device.h"
#include "kernels/device/half8.h"
#include "kernels/device/memory.h"
#include "kernels/device/warp.h"
#include "kernels/math/activation_device.h"
#include "kernels/norm/layer_norm_f16_params.h"

namespace mk {
namespace {

using device::half;
using device::kWarpSize;
using device::Words4;

constexpr int kThreads = 256;
constexpr int kChunk = 8;

// A piece of `kCount` channels of the row that is normed: x, or x + residual rounded, which is also
// stored.
template <int kCount>
struct Piece;

template <>
struct Piece<kChunk> {
  static MK_DEVICE void Read(const half* p, float (&v)[kChunk]) {
    device::Unpack(device::Load(device::As<Words4>(p)), v);
  }
  static MK_DEVICE void Write(half* p, const float (&v)[kChunk]) {
    device::Store(device::As<Words4>(p), device::Pack(v));
  }
  static MK_DEVICE void ReadFloats(const float* p, float (&v)[kChunk]) { device::LoadFloat8(p, v); }
};

template <>
struct Piece<1> {
  static MK_DEVICE void Read(const half* p, float (&v)[1]) { v[0] = ToFloat(device::Load(p)); }
  static MK_DEVICE void Write(half* p, const float (&v)[1]) {
    device::Store(p, device::ToHalf(v[0]));
  }
  static MK_DEVICE void ReadFloats(const float* p, float (&v)[1]) { v[0] = device::Load(p); }
};

template <int kCount>
MK_DEVICE void ReadSum(const LayerNormF16Params& p, mk_i64 at, float (&v)[kCount]) {
  Piece<kCount>::Read(p.x + at, v);
  if (p.residual == nullptr) return;
  float r[kCount];
  Piece<kCount>::Read(p.residual + at, r);
  MK_UNROLL
  for (int i = 0; i < kCount; ++i) v[i] = device::ToFloat(device::ToHalf(v[i] + r[i]));
  Piece<kCount>::Write(p.sum + at, v);
}

template <int kCount>
MK_DEVICE float SquaresAbout(const float (&v)[kCount], float mean) {
  float squares = 0.0f;
  MK_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const float d = v[i] - mean;
    squares = device::Fma(d, d, squares);
  }
  return squares;
}

// y at channels [c, c + kCount) of the row that begins at `row`.
template <int kCount>
MK_DEVICE void WriteResult(const LayerNormF16Params& p, mk_i64 row, int c, float (&v)[kCount],
                           float mean, float scale) {
  float weight[kCount], bias[kCount] = {};
  Piece<kCount>::ReadFloats(p.weight + c, weight);
  if (p.bias != nullptr) Piece<kCount>::ReadFloats(p.bias + c, bias);
  MK_UNROLL
  for (int i = 0; i < kCount; ++i) {
    v[i] = device::Fma((v[i] - mean) * scale, weight[i], bias[i]);
  }
  device::Activate(p.activation, v);
  Piece<kCount>::Write(p.y + row + c, v);
}

// Rows of up to 8 kLanes kChunks channels, a multiple of 8.
template <int kLanes, int kChunks>
MK_DEVICE void NormInRegisters(const LayerNormF16Params& p) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const mk_i64 index = static_cast<mk_i64>(blockIdx.x) * (kThreads / kLanes) +
                       static_cast<int>(threadIdx.x) / kLanes;
  const bool inside = index < p.rows;  // a warp may have rows outside: they take part in shuffles
  const mk_i64 row = index * p.channels;
  const int channels = static_cast<int>(p.channels);
  const float count = static_cast<float>(channels);

  float v[kChunks][kChunk];
  float sum = 0.0f;
  MK_UNROLL
  for (int i = 0; i < kChunks; ++i) {
    const int c = (i * kLanes + lane) * kChunk;
    MK_UNROLL
    for (int j = 0; j < kChunk; ++j) v[i][j] = 0.0f;
    if (inside && c < channels) ReadSum(p, row + c, v[i]);
    MK_UNROLL
    for (int j = 0; j < kChunk; ++j) sum += v[i][j];
  }
  const float mean = p.rms != 0 ? 0.0f : device::WarpSum<kLanes>(sum) / count;
  float squares = 0.0f;
  MK_UNROLL
  for (int i = 0; i < kChunks; ++i) {
    if ((i * kLanes + lane) * kChunk < channels) squares += SquaresAbout(v[i], mean);
  }
  const float variance = device::WarpSum<kLanes>(squares) / count;
  const float scale = 1.0f / device::Sqrt(variance + p.epsilon);
  MK_UNROLL
  for (int i = 0; i < kChunks; ++i) {
    const int c = (i * kLanes + lane) * kChunk;
    if (inside && c < channels) WriteResult(p, row, c, v[i], mean, scale);
  }
}

// Rows of any multiple of kCount channels, a warp each. What a lane writes only it reads again.
template <int kCount>
MK_DEVICE void NormFromMemory(const LayerNormF16Params& p) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const mk_i64 index = static_cast<mk_i64>(blockIdx.x) * (kThreads / kWarpSize) +
                       static_cast<int>(threadIdx.x) / kWarpSize;
  if (index >= p.rows) return;  // the whole warp
  const mk_i64 row = index * p.channels;
  const half* const normed = p.residual != nullptr ? p.sum : p.x;
  const int channels = static_cast<int>(p.channels);
  const float count = static_cast<float>(channels);

  float v[kCount];
  float sum = 0.0f;
  for (int c = lane * kCount; c < channels; c += kWarpSize * kCount) {
    ReadSum(p, row + c, v);
    MK_UNROLL
    for (int j = 0; j < kCount; ++j) sum += v[j];
  }
  const float mean = p.rms != 0 ? 0.0f : device::WarpSum(sum) / count;
  float squares = 0.0f;
  for (int c = lane * kCount; c < channels; c += kWarpSize * kCount) {
    Piece<kCount>::Read(normed + row + c, v);
    squares += SquaresAbout(v, mean);
  }
  const float scale = 1.0f / device::Sqrt(device::WarpSum(squares) / count + p.epsilon);
  for (int c = lane * kCount; c < channels; c += kWarpSize * kCount) {
    Piece<kCount>::Read(normed + row + c, v);
    WriteResult(p, row, c, v, mean, scale);
  }
}

}  // namespace
}  // namespace mk

#define MK_LAYER_NORM_F16(name, ...)                             \
  extern "C" __global__ void __launch_bounds__(256)              \
      mk_layer_norm_f16_##name(const mk::LayerNormF16Params p) { \
    mk::__VA_ARGS__(p);                                          \
  }

MK_LAYER_NORM_F16(lanes8, NormInRegisters<8, 1>)
MK_LAYER_NORM_F16(lanes16, NormInRegisters<16, 1>)
MK_LAYER_NORM_F16(lanes32, NormInRegisters<32, 1>)
MK_LAYER_NORM_F16(chunks2, NormInRegisters<32, 2>)
MK_LAYER_NORM_F16(chunks4, NormInRegisters<32, 4>)
MK_LAYER_NORM_F16(wide, NormFromMemory<8>)
MK_LAYER_NORM_F16(any, NormFromMemory<1>)
