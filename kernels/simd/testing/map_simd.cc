#include "kernels/simd/testing/map.h"
#include "kernels/simd/vec_math.h"

namespace mk::simd::MK_SIMD_ISA {
namespace {

template <MapOp kOp>
MK_SIMD_INLINE F32 Apply(F32 x) {
  const F32 one = F32::Set(1.0f);
  switch (kOp) {
    case MapOp::kExp:
      return Exp(x);
    case MapOp::kSoftplus:
      return Softplus(x);
    case MapOp::kGelu:
      return Gelu(x);
    case MapOp::kSilu:
      return Silu(x);
    case MapOp::kRelu:
      return Relu(x);
    case MapOp::kCopy:
      return x;
    case MapOp::kAbs:
      return Abs(x);
    case MapOp::kNegAbs:
      return NegAbs(x);
    case MapOp::kMaxZero:
      return Max(F32::Set(0.0f), x);
    case MapOp::kMinOne:
      return Min(one, x);
    case MapOp::kSquarePlusOne:
      return MulAdd(x, x, one);
    case MapOp::kOneMinusSquare:
      return NegMulAdd(x, x, one);
    case MapOp::kSignSelect:
      return SelectNegative(x, one, F32::Set(2.0f));
  }
  return x;
}

template <MapOp kOp>
void Loop(const float* x, float* y, mk_i64 count) {
  mk_i64 i = 0;
  for (; i + F32::kLanes <= count; i += F32::kLanes) Apply<kOp>(F32::Load(x + i)).Store(y + i);
  Apply<kOp>(F32::LoadFirst(x + i, count - i)).StoreFirst(y + i, count - i);
}

}  // namespace

void Map(MapOp op, const float* x, float* y, mk_i64 count) {
  switch (op) {
    case MapOp::kExp:
      return Loop<MapOp::kExp>(x, y, count);
    case MapOp::kSoftplus:
      return Loop<MapOp::kSoftplus>(x, y, count);
    case MapOp::kGelu:
      return Loop<MapOp::kGelu>(x, y, count);
    case MapOp::kSilu:
      return Loop<MapOp::kSilu>(x, y, count);
    case MapOp::kRelu:
      return Loop<MapOp::kRelu>(x, y, count);
    case MapOp::kCopy:
      return Loop<MapOp::kCopy>(x, y, count);
    case MapOp::kAbs:
      return Loop<MapOp::kAbs>(x, y, count);
    case MapOp::kNegAbs:
      return Loop<MapOp::kNegAbs>(x, y, count);
    case MapOp::kMaxZero:
      return Loop<MapOp::kMaxZero>(x, y, count);
    case MapOp::kMinOne:
      return Loop<MapOp::kMinOne>(x, y, count);
    case MapOp::kSquarePlusOne:
      return Loop<MapOp::kSquarePlusOne>(x, y, count);
    case MapOp::kOneMinusSquare:
      return Loop<MapOp::kOneMinusSquare>(x, y, count);
    case MapOp::kSignSelect:
      return Loop<MapOp::kSignSelect>(x, y, count);
  }
}

float SumLanes(const float* x) { return Sum(F32::Load(x)); }

float Peak(mk_i64 rounds) {
  F32 sum[kPeakChains];
  for (int i = 0; i < kPeakChains; ++i) sum[i] = F32::Set(static_cast<float>(i));
  const F32 a = F32::Set(0.999f);
  const F32 b = F32::Set(0.001f);
  for (mk_i64 round = 0; round < rounds; ++round) {
    for (int i = 0; i < kPeakChains; ++i) sum[i] = MulAdd(sum[i], a, b);
  }
  float total = 0;
  for (int i = 0; i < kPeakChains; ++i) total += Sum(sum[i]);
  return total;
}

mk_i64 Lanes() { return F32::kLanes; }

}  // namespace mk::simd::MK_SIMD_ISA
