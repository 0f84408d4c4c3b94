#include "kernels/linear/epilogue.h"
#include "kernels/simd/vec_math.h"

namespace mk::simd::MK_SIMD_ISA {
namespace {

constexpr mk_i64 kLanes = F32::kLanes;

// Columns [j, j + count) of one row, count <= kLanes; whole: count is kLanes.
template <Activation kActivation, bool kWhole>
MK_SIMD_INLINE void Element(const EpilogueParams& p, float* y, const float* residual, mk_i64 j,
                            mk_i64 count) {
  F32 v = LoadPart<F32, kWhole>(y + j, count);
  if (p.bias != nullptr) v = v + LoadPart<F32, kWhole>(p.bias + j, count);
  v = Activate<kActivation>(v);
  if (residual != nullptr) v = v + LoadPart<F32, kWhole>(residual + j, count);
  StorePart<kWhole>(v, y + j, count);
}

template <Activation kActivation>
void Rows(const EpilogueParams& p) {
  if (kActivation == Activation::kNone && p.bias == nullptr && p.residual == nullptr) return;
  float* y = p.y;
  const float* residual = p.residual;
  for (mk_i64 row = 0; row < p.rows; ++row, y += p.n) {
    mk_i64 j = 0;
    for (; j + kLanes <= p.n; j += kLanes) Element<kActivation, true>(p, y, residual, j, kLanes);
    if (j < p.n) Element<kActivation, false>(p, y, residual, j, p.n - j);
    if (residual != nullptr) residual += p.n;
  }
}

}  // namespace

void Epilogue(const EpilogueParams& p) {
  switch (p.activation) {
    case Activation::kNone:
      return Rows<Activation::kNone>(p);
    case Activation::kRelu:
      return Rows<Activation::kRelu>(p);
    case Activation::kGelu:
      return Rows<Activation::kGelu>(p);
    case Activation::kSilu:
      return Rows<Activation::kSilu>(p);
  }
}

}  // namespace mk::simd::MK_SIMD_ISA
