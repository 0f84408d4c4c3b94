// Elementary functions in fp32, as accurate as the compiler's library makes them (a few ulp; the
// GPU's and the host's differ by that). The hardware's quick approximations are in ptx.h.
#ifndef MERGEKERNEL_KERNELS_DEVICE_MATH_H_
#define MERGEKERNEL_KERNELS_DEVICE_MATH_H_

#include "kernels/device/device.h"

namespace mk {
namespace device {

#if defined(MK_EMULATED)
#define MK_MATH(name) __builtin_##name
#else
#define MK_MATH(name) ::name
#endif

MK_DEVICE float Exp(float x) { return MK_MATH(expf)(x); }
MK_DEVICE float Log(float x) { return MK_MATH(logf)(x); }
MK_DEVICE float Log1p(float x) { return MK_MATH(log1pf)(x); }
MK_DEVICE float Erf(float x) { return MK_MATH(erff)(x); }
MK_DEVICE float Tanh(float x) { return MK_MATH(tanhf)(x); }
MK_DEVICE float Abs(float x) { return MK_MATH(fabsf)(x); }
MK_DEVICE float Floor(float x) { return MK_MATH(floorf)(x); }
// The greater one; of a NaN and a number the number (Max of device.h keeps the first one's NaN).
MK_DEVICE float MaxNumber(float a, float b) { return MK_MATH(fmaxf)(a, b); }

#undef MK_MATH

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_DEVICE_MATH_H_
