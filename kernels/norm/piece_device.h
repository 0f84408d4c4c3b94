// What device code of this folder reads and writes at once: kWidth halves that follow each other,
// packed as they are stored (exact, and half the registers of floats), or as floats.
#ifndef MERGEKERNEL_KERNELS_NORM_PIECE_DEVICE_H_
#define MERGEKERNEL_KERNELS_NORM_PIECE_DEVICE_H_

#include "kernels/device/half8.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"

namespace mk {
namespace device {

// Raw: the piece in one register set, aligned to its size in memory.
template <int kWidth>
struct Piece;

template <>
struct Piece<8> {
  using Raw = Words4;
  static MK_DEVICE void ToFloats(const Raw& raw, float (&v)[8]) { Unpack(raw, v); }
  static MK_DEVICE Raw ToRaw(const float (&v)[8]) { return Pack(v); }
};

template <>
struct Piece<2> {
  using Raw = mk_u32;
  static MK_DEVICE void ToFloats(Raw raw, float (&v)[2]) {
    v[0] = LowHalf(raw);
    v[1] = HighHalf(raw);
  }
  static MK_DEVICE Raw ToRaw(const float (&v)[2]) { return PackHalf2(v[0], v[1]); }
};

template <>
struct Piece<1> {
  using Raw = half;
  static MK_DEVICE void ToFloats(Raw raw, float (&v)[1]) { v[0] = ToFloat(raw); }
  static MK_DEVICE Raw ToRaw(const float (&v)[1]) { return ToHalf(v[0]); }
};

// What is normed at `at`: x, or x + residual rounded. The `first` to read it also stores it where
// somebody wants the sum, and later ones read it there. Params has x, residual and sum.
template <int kWidth, class Params>
MK_DEVICE typename Piece<kWidth>::Raw ReadNormed(const Params& p, mk_i64 at, bool first) {
  using Raw = typename Piece<kWidth>::Raw;
  if (!first && p.sum != nullptr) return Load(As<Raw>(p.sum + at));
  const Raw x = Load(As<Raw>(p.x + at));
  if (p.residual == nullptr) return x;
  const Raw residual = Load(As<Raw>(p.residual + at));
  float v[kWidth], r[kWidth];
  Piece<kWidth>::ToFloats(x, v);
  Piece<kWidth>::ToFloats(residual, r);
  MK_UNROLL
  for (int i = 0; i < kWidth; ++i) v[i] += r[i];
  const Raw sum = Piece<kWidth>::ToRaw(v);
  if (first && p.sum != nullptr) Store(As<Raw>(p.sum + at), sum);
  return sum;
}

template <int kWidth>
MK_DEVICE float PieceSum(const typename Piece<kWidth>::Raw& raw) {
  float v[kWidth];
  Piece<kWidth>::ToFloats(raw, v);
  float sum = v[0];
  MK_UNROLL
  for (int i = 1; i < kWidth; ++i) sum += v[i];
  return sum;
}

template <int kWidth>
MK_DEVICE float PieceSquares(const typename Piece<kWidth>::Raw& raw, float mean) {
  float v[kWidth];
  Piece<kWidth>::ToFloats(raw, v);
  float squares = 0.0f;
  MK_UNROLL
  for (int i = 0; i < kWidth; ++i) squares = Fma(v[i] - mean, v[i] - mean, squares);
  return squares;
}

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_PIECE_DEVICE_H_
