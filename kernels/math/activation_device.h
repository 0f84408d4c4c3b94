// Activations in device code, fp32: as kernels/math/activation.h, with the device library's erf and
// exp. NaN stays NaN.
#ifndef MERGEKERNEL_KERNELS_MATH_ACTIVATION_DEVICE_H_
#define MERGEKERNEL_KERNELS_MATH_ACTIVATION_DEVICE_H_

#include "kernels/device/device.h"
#include "kernels/device/math.h"
#include "kernels/math/activation_params.h"

namespace mk {
namespace device {

MK_DEVICE float Relu(float x) { return x < 0.0f ? 0.0f : x; }
MK_DEVICE float Gelu(float x) { return 0.5f * x * (1.0f + Erf(0.707106781f * x)); }
// For x below -88 the exponential is infinite, and the quotient the right 0.
MK_DEVICE float Silu(float x) { return x / (1.0f + Exp(-x)); }

// Of kCount values; one branch for all of them, and every thread takes the same.
template <int kCount>
MK_DEVICE void Activate(Activation activation, float (&v)[kCount]) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      MK_UNROLL
      for (int i = 0; i < kCount; ++i) v[i] = Relu(v[i]);
      break;
    case Activation::kGelu:
      MK_UNROLL
      for (int i = 0; i < kCount; ++i) v[i] = Gelu(v[i]);
      break;
    case Activation::kSilu:
      MK_UNROLL
      for (int i = 0; i < kCount; ++i) v[i] = Silu(v[i]);
      break;
  }
}

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_MATH_ACTIVATION_DEVICE_H_
