// Exponential, softplus and the activations for whole vectors: the polynomials of kernels/math,
// with fused multiply-adds where the instruction set has them.
//
//   Exp(x)       at most 2 ulp; 0 where e^x < 2^-126, infinity from x = 88.38 (2.4e38) on
//   Softplus(x)  at most 4 ulp, absolute 1.2e-38; exactly x for x > 20
//   Gelu(x)      error at most 2e-7 |x|
//   Silu(x)      at most 4 ulp, absolute 1e-36
//   Relu(x)      exact
//
// NaN stays NaN in its lane. Every function is a template over the vector type, so that its name
// carries the instruction set: the linker can never give one set's code to another's caller.
#ifndef MERGEKERNEL_KERNELS_SIMD_VEC_MATH_H_
#define MERGEKERNEL_KERNELS_SIMD_VEC_MATH_H_

#include "kernels/math/activation_params.h"
#include "kernels/simd/vec.h"

namespace mk::simd {

// e^x. One factor 2^n is enough, for denormal results are 0 here: nobody multiplies by them.
template <typename V>
MK_SIMD_INLINE V Exp(V x) {
  // 1.5 * 2^23 + 127: adding it leaves the nearest integer, with the exponent's bias, in the low
  // bits of the mantissa.
  const V shift = V::Set(12583039.0f);
  x = Max(V::Set(-88.02969f), x);  // n = -127: a factor of 0
  x = Min(V::Set(88.72283f), x);   // n = 128: a factor of infinity
  const V shifted = MulAdd(x, V::Set(1.44269504f), shift);
  const V n = shifted - shift;
  // ln 2 in two parts, so that n ln 2 loses nothing.
  const V r = NegMulAdd(n, V::Set(1.42860677e-6f), NegMulAdd(n, V::Set(0.693145752f), x));
  V p = V::Set(0.0013812817633152008f);
  p = MulAdd(p, r, V::Set(0.008368805050849915f));
  p = MulAdd(p, r, V::Set(0.04166843369603157f));
  p = MulAdd(p, r, V::Set(0.1666651964187622f));
  p = MulAdd(p, r, V::Set(0.4999999403953552f));
  const V e = MulAdd(p, r * r, r) + V::Set(1.0f);
  return e * ToExponent(shifted);
}

// log(1 + t) for t in [0, 1]: 2 atanh(t / (2 + t)).
template <typename V>
MK_SIMD_INLINE V Log1pUnit(V t) {
  const V s = t / (V::Set(2.0f) + t);
  const V z = s * s;
  V p = V::Set(0.1400599628686905f);
  p = MulAdd(p, z, V::Set(0.14000901579856873f));
  p = MulAdd(p, z, V::Set(0.2001076340675354f));
  p = MulAdd(p, z, V::Set(0.3333320915699005f));
  const V twice = s + s;
  return MulAdd(twice, p * z, twice);
}

template <typename V>
MK_SIMD_INLINE V Softplus(V x) {
  return Max(V::Set(0.0f), x) + Log1pUnit(Exp(NegAbs(x)));
}

// The normal distribution function; see kernels/math/activation.h for the fit.
template <typename V>
MK_SIMD_INLINE V NormalCdf(V x) {
  const V a = Min(V::Set(40.0f), Abs(x));
  const V scaled = V::Set(0.424264069f) * a;
  const V w = scaled / (V::Set(1.0f) + scaled);
  V p = V::Set(0.03425128385424614f);
  p = MulAdd(p, w, V::Set(-0.02190123312175274f));
  p = MulAdd(p, w, V::Set(-0.04619428515434265f));
  p = MulAdd(p, w, V::Set(-0.06963633745908737f));
  p = MulAdd(p, w, V::Set(0.09624169766902924f));
  p = MulAdd(p, w, V::Set(0.4485677182674408f));
  p = MulAdd(p, w, V::Set(-0.9403159022331238f));
  const V tail = MulAdd(p, w, V::Set(0.5f)) * Exp(V::Set(-0.5f) * a * a);
  return SelectNegative(x, tail, V::Set(1.0f) - tail);
}

template <typename V>
MK_SIMD_INLINE V Gelu(V x) {
  return x * NormalCdf(x);
}

template <typename V>
MK_SIMD_INLINE V Silu(V x) {
  return x / (V::Set(1.0f) + Exp(V::Set(0.0f) - x));
}

template <typename V>
MK_SIMD_INLINE V Relu(V x) {
  return Max(V::Set(0.0f), x);
}

// An activation as a type, for loops that are compiled once for each.
template <Activation kActivation, typename V>
MK_SIMD_INLINE V Activate(V x) {
  if constexpr (kActivation == Activation::kRelu) {
    return Relu(x);
  } else if constexpr (kActivation == Activation::kGelu) {
    return Gelu(x);
  } else if constexpr (kActivation == Activation::kSilu) {
    return Silu(x);
  } else {
    return x;
  }
}

// `count` floats from p on, count <= V::kLanes; all of them where kWhole.
template <typename V, bool kWhole>
MK_SIMD_INLINE V LoadPart(const float* p, mk_i64 count) {
  if constexpr (kWhole) {
    return V::Load(p);
  } else {
    return V::LoadFirst(p, count);
  }
}

template <bool kWhole, typename V>
MK_SIMD_INLINE void StorePart(V v, float* p, mk_i64 count) {
  if constexpr (kWhole) {
    v.Store(p);
  } else {
    v.StoreFirst(p, count);
  }
}

}  // namespace mk::simd

#endif  // MERGEKERNEL_KERNELS_SIMD_VEC_MATH_H_
