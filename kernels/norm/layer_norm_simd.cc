// One row after the other: mean, then variance about it (a variance in one pass loses everything
// when the mean is large), then the result. A row is read three times, from L1 but for the first.
#include "kernels/norm/layer_norm_simd.h"

#include "kernels/simd/vec_math.h"

namespace mk::simd::MK_SIMD_ISA {
namespace {

constexpr mk_i64 kLanes = F32::kLanes;

// sum_c x[c] - shift, or its squares; two chains of additions, so that they overlap.
template <bool kSquared>
MK_SIMD_INLINE float SumOf(const float* x, mk_i64 channels, float shift) {
  const F32 about = F32::Set(shift);
  const auto add = [&](F32 sum, F32 v) {
    const F32 d = v - about;
    return kSquared ? MulAdd(d, d, sum) : sum + d;
  };
  F32 even = F32::Set(0.0f);
  F32 odd = F32::Set(0.0f);
  mk_i64 c = 0;
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes) {
    even = add(even, F32::Load(x + c));
    odd = add(odd, F32::Load(x + c + kLanes));
  }
  if (c + kLanes <= channels) {
    even = add(even, F32::Load(x + c));
    c += kLanes;
  }
  float sum = Sum(even + odd);
  // What is left over fills no vector, and lanes beyond it must not count.
  for (; c < channels; ++c) {
    const float d = x[c] - shift;
    sum += kSquared ? d * d : d;
  }
  return sum;
}

template <Activation kActivation>
void Rows(const LayerNormParams& p, mk_i64 begin, mk_i64 end) {
  const mk_i64 channels = p.channels;
  const float count = static_cast<float>(channels);
  for (mk_i64 row = begin; row < end; ++row) {
    const float* x = p.x + row * channels;
    float* y = p.y + row * channels;
    const float mean = SumOf<false>(x, channels, 0.0f) / count;
    const float variance = SumOf<true>(x, channels, mean) / count;
    const F32 about = F32::Set(mean);
    const F32 scale = F32::Set(1.0f / __builtin_sqrtf(variance + p.epsilon));
    const auto result = [&](F32 v, F32 weight, F32 bias) {
      return Activate<kActivation>(MulAdd((v - about) * scale, weight, bias));
    };
    mk_i64 c = 0;
    for (; c + kLanes <= channels; c += kLanes) {
      result(F32::Load(x + c), F32::Load(p.weight + c), F32::Load(p.bias + c)).Store(y + c);
    }
    if (c < channels) {
      const mk_i64 n = channels - c;
      result(F32::LoadFirst(x + c, n), F32::LoadFirst(p.weight + c, n),
             F32::LoadFirst(p.bias + c, n))
          .StoreFirst(y + c, n);
    }
  }
}

}  // namespace

void NormRows(const LayerNormParams& p, mk_i64 begin, mk_i64 end) {
  switch (p.activation) {
    case Activation::kNone:
      return Rows<Activation::kNone>(p, begin, end);
    case Activation::kRelu:
      return Rows<Activation::kRelu>(p, begin, end);
    case Activation::kGelu:
      return Rows<Activation::kGelu>(p, begin, end);
    case Activation::kSilu:
      return Rows<Activation::kSilu>(p, begin, end);
  }
}

}  // namespace mk::simd::MK_SIMD_ISA
