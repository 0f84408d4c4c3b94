// Activations in fp32, free of branches like Exp, so that loops over them become vector code.
//
//   Relu(x)  exact; NaN stays NaN
//   Gelu(x)  x Phi(x); error at most 1.6e-7 |x|
//   Silu(x)  x / (1 + e^-x); at most 3 ulp, absolute 1e-36 where the true value is that small
//
// Source: ours. Phi(-a) for a >= 0 is e^(-a^2/2) times a polynomial of degree 7 in
// w = t / (t + 1), t = 0.6 a / sqrt(2), with the exact constant 1/2 (so that small arguments lose
// nothing), fitted to erfc with an absolute error of 4.5e-10.
#ifndef MERGEKERNEL_KERNELS_MATH_ACTIVATION_H_
#define MERGEKERNEL_KERNELS_MATH_ACTIVATION_H_

#include <cmath>

#include "kernels/math/activation_params.h"
#include "kernels/math/exp.h"

namespace mk {

inline float Relu(float x) { return x < 0.0f ? 0.0f : x; }

inline float Silu(float x) { return x / (1.0f + Exp(-x)); }

// The normal distribution function: (1 + erf(x / sqrt 2)) / 2. Absolute error at most 1e-7.
inline float NormalCdf(float x) {
  float a = std::fabs(x);
  a = a > 40.0f ? 40.0f : a;  // the tail is 0 long before; keeps infinity out of w, lets NaN pass
  const float scaled = 0.424264069f * a;  // 0.6 / sqrt 2
  const float w = scaled / (1.0f + scaled);
  float p = 0.03425128385424614f;
  p = p * w + -0.02190123312175274f;
  p = p * w + -0.04619428515434265f;
  p = p * w + -0.06963633745908737f;
  p = p * w + 0.09624169766902924f;
  p = p * w + 0.4485677182674408f;
  p = p * w + -0.9403159022331238f;
  const float tail = (p * w + 0.5f) * Exp(-0.5f * a * a);  // Phi(-a)
  return x < 0.0f ? tail : 1.0f - tail;
}

inline float Gelu(float x) { return x * NormalCdf(x); }

// An activation as a type, for loops that are compiled once for each.
template <Activation kActivation>
inline float Activate(float x) {
  switch (kActivation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return Relu(x);
    case Activation::kGelu:
      return Gelu(x);
    case Activation::kSilu:
      return Silu(x);
  }
  return x;
}

// The activation in double, by its definition: what twins and tests of 16-bit and vector code are
// held against.
inline double ActivateExactly(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

inline bool IsActivation(Activation activation) {
  return static_cast<mk_u32>(activation) <= static_cast<mk_u32>(Activation::kSilu);
}

inline const char* ActivationName(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return "none";
    case Activation::kRelu:
      return "relu";
    case Activation::kGelu:
      return "gelu";
    case Activation::kSilu:
      return "silu";
  }
  return "unknown";
}

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_MATH_ACTIVATION_H_
