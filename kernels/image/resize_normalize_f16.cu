// 8-bit pixels to fp16: a thread per pixel of what a kernel writes, with all its channels.
//
// direct: pixels as they are, cropped, padded, normalised. across: the source rows under the
// window, filtered along x, as fp32. down: those filtered along y, padded, normalised.
//
// Grid: (ceil(columns / 128), rows) of what is written. Block: 128 threads. No shared memory, no
// barrier. Each thread makes the weights of its taps itself, twice, for their sum comes first: what
// a table would save of some ten instructions a tap it would cost in another launch. Neighbouring
// threads' taps overlap, and come from L1.
#include "kernels/device/device.h"
#include "kernels/device/math.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"
#include "kernels/image/resize_normalize_f16_params.h"

namespace mk {
namespace {

using device::half;

constexpr int kThreads = 128;

// The taps of sample i of `target` of `source` ones. By integers, so that positions far from 0 lose
// nothing: tap j is at a distance of |(2 j + 1) target - (2 i + 1) source| / unit from the centre.
struct Taps {
  mk_i64 begin, end;
  mk_i64 offset;  // of tap `begin`, with its sign
  mk_i64 step;    // to the next
  float scale;    // 1 / unit
};

// floor(a / b) for a >= 0, b > 0 and a quotient below 2^22, where the quotient of floats is off by
// less than 1. A division of 64-bit integers is a call, and costs a stack.
MK_DEVICE mk_i64 FloorDiv(mk_i64 a, mk_i64 b) {
  mk_i64 q = static_cast<mk_i64>(static_cast<float>(a) / static_cast<float>(b));
  if (q * b > a) --q;
  if ((q + 1) * b <= a) ++q;
  return q;
}

MK_DEVICE Taps TapsOf(mk_i64 source, mk_i64 target, mk_i64 i, mk_u32 filter) {
  const mk_i64 radius = filter == MK_RESIZE_TRIANGLE ? 1 : 2;
  const mk_i64 unit = 2 * device::Max(source, target);
  const mk_i64 centre = (2 * i + 1) * source;
  const mk_i64 low = centre - radius * unit, high = centre + radius * unit;
  Taps taps;
  taps.begin = low < 0 ? 0 : (FloorDiv(low, target) + 1) / 2;
  taps.end = device::Min(source, FloorDiv(high + target - 1, target) / 2);
  taps.offset = (2 * taps.begin + 1) * target - centre;
  taps.step = 2 * target;
  taps.scale = 1.0f / static_cast<float>(unit);
  return taps;
}

MK_DEVICE float WeightOf(const Taps& taps, mk_i64 offset, mk_u32 filter) {
  using namespace device;
  const float t = Abs(static_cast<float>(offset)) * taps.scale;
  if (filter == MK_RESIZE_TRIANGLE) return Max(0.0f, 1.0f - t);
  if (t < 1.0f) return Fma(Fma(1.5f, t, -2.5f) * t, t, 1.0f);
  return t < 2.0f ? Fma(Fma(Fma(-0.5f, t, 2.5f), t, -4.0f), t, 2.0f) : 0.0f;
}

// Calls tap(index, weight) for each tap, the weights adding up to 1.
template <class Tap>
MK_DEVICE void ForEachTap(const Taps& taps, mk_u32 filter, Tap tap) {
  float sum = 0.0f;
  mk_i64 offset = taps.offset;
  for (mk_i64 j = taps.begin; j < taps.end; ++j, offset += taps.step) {
    sum += WeightOf(taps, offset, filter);
  }
  const float scale = 1.0f / sum;
  offset = taps.offset;
  for (mk_i64 j = taps.begin; j < taps.end; ++j, offset += taps.step) {
    tap(j, WeightOf(taps, offset, filter) * scale);
  }
}

// A product that no addition is fused with, as on the CPU.
MK_DEVICE float Product(float a, float b) { return device::Fma(a, b, -0.0f); }

// Step 1: a pixel of the image as kOut channels.
template <int kOut>
MK_DEVICE void ReadPixel(const ResizeNormalizeF16Params& p, mk_i64 row, mk_i64 column,
                         float (&v)[kOut]) {
  using namespace device;
  const mk_u8* const pixel = p.image + (row * p.width + column) * p.channels;
  if (p.channels == 1) {
    const float gray = static_cast<float>(Load(pixel));
    MK_UNROLL
    for (int c = 0; c < kOut; ++c) v[c] = gray;
    return;
  }
  const float red = static_cast<float>(Load(pixel));
  const float green = static_cast<float>(Load(pixel + 1));
  const float blue = static_cast<float>(Load(pixel + 2));
  if constexpr (kOut == 1) {
    v[0] = (Product(red, 0.299f) + Product(green, 0.587f)) + Product(blue, 0.114f);
  } else {
    v[0] = red, v[1] = green, v[2] = blue;
  }
}

template <int kOut>
MK_DEVICE void Clamp(mk_u32 filter, float (&v)[kOut]) {
  if (filter != MK_RESIZE_BICUBIC) return;
  MK_UNROLL
  for (int c = 0; c < kOut; ++c) v[c] = device::Min(255.0f, device::Max(0.0f, v[c]));
}

// Step 5, and out.
template <int kOut>
MK_DEVICE void WritePixel(const ResizeNormalizeF16Params& p, mk_i64 row, mk_i64 column,
                          const float (&v)[kOut]) {
  half* const y = p.y + (row * (p.crop_width + 2 * p.pad) + column) * kOut;
  MK_UNROLL
  for (int c = 0; c < kOut; ++c) {
    device::Store(y + c, device::ToHalf((v[c] / 255.0f - p.mean[c]) / p.std[c]));
  }
}

template <int kOut>
MK_DEVICE void Direct(const ResizeNormalizeF16Params& p, mk_i64 row, mk_i64 column) {
  float v[kOut] = {};
  const mk_i64 i = row - p.pad, j = column - p.pad;
  if (i >= 0 && i < p.crop_height && j >= 0 && j < p.crop_width) {
    ReadPixel(p, p.crop_top + i, p.crop_left + j, v);
  }
  WritePixel(p, row, column, v);
}

template <int kOut>
MK_DEVICE void Across(const ResizeNormalizeF16Launch& launch, mk_i64 row, mk_i64 column) {
  const ResizeNormalizeF16Params& p = launch.p;
  const Taps taps = TapsOf(p.width, p.resized_width, p.crop_left + column, p.filter);
  float sum[kOut] = {};
  ForEachTap(taps, p.filter, [&](mk_i64 j, float weight) {
    float v[kOut];
    ReadPixel(p, launch.first_row + row, j, v);
    MK_UNROLL
    for (int c = 0; c < kOut; ++c) sum[c] = device::Fma(weight, v[c], sum[c]);
  });
  Clamp(p.filter, sum);
  float* const filtered = launch.filtered + (row * p.crop_width + column) * kOut;
  MK_UNROLL
  for (int c = 0; c < kOut; ++c) device::Store(filtered + c, sum[c]);
}

template <int kOut>
MK_DEVICE void Down(const ResizeNormalizeF16Launch& launch, mk_i64 row, mk_i64 column) {
  const ResizeNormalizeF16Params& p = launch.p;
  float sum[kOut] = {};
  const mk_i64 i = row - p.pad, j = column - p.pad;
  if (i >= 0 && i < p.crop_height && j >= 0 && j < p.crop_width) {
    const Taps taps = TapsOf(p.height, p.resized_height, p.crop_top + i, p.filter);
    ForEachTap(taps, p.filter, [&](mk_i64 tap, float weight) {
      const float* const v = launch.filtered + ((tap - launch.first_row) * p.crop_width + j) * kOut;
      MK_UNROLL
      for (int c = 0; c < kOut; ++c) sum[c] = device::Fma(weight, device::Load(v + c), sum[c]);
    });
    Clamp(p.filter, sum);
  }
  WritePixel(p, row, column, sum);
}

MK_DEVICE mk_i64 RowOfThread() { return blockIdx.y; }
MK_DEVICE mk_i64 ColumnOfThread() {
  return static_cast<mk_i64>(blockIdx.x) * kThreads + threadIdx.x;
}

}  // namespace
}  // namespace mk

extern "C" __global__ void __launch_bounds__(128)
    mk_resize_normalize_f16_direct(const mk::ResizeNormalizeF16Launch launch) {
  using namespace mk;
  const mk_i64 row = RowOfThread(), column = ColumnOfThread();
  if (column >= launch.p.crop_width + 2 * launch.p.pad) return;
  launch.p.out_channels == 1 ? Direct<1>(launch.p, row, column) : Direct<3>(launch.p, row, column);
}

extern "C" __global__ void __launch_bounds__(128)
    mk_resize_normalize_f16_across(const mk::ResizeNormalizeF16Launch launch) {
  using namespace mk;
  const mk_i64 row = RowOfThread(), column = ColumnOfThread();
  if (column >= launch.p.crop_width) return;
  launch.p.out_channels == 1 ? Across<1>(launch, row, column) : Across<3>(launch, row, column);
}

extern "C" __global__ void __launch_bounds__(128)
    mk_resize_normalize_f16_down(const mk::ResizeNormalizeF16Launch launch) {
  using namespace mk;
  const mk_i64 row = RowOfThread(), column = ColumnOfThread();
  if (column >= launch.p.crop_width + 2 * launch.p.pad) return;
  launch.p.out_channels == 1 ? Down<1>(launch, row, column) : Down<3>(launch, row, column);
}
