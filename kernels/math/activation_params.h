// The activations that epilogues know. Plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_MATH_ACTIVATION_PARAMS_H_
#define MERGEKERNEL_KERNELS_MATH_ACTIVATION_PARAMS_H_

#include "core/abi/mk_types.h"

namespace mk {

enum class Activation : mk_u32 {
  kNone = 0,
  kRelu = 1,  // max(x, 0)
  kGelu = 2,  // x * Phi(x), Phi the normal distribution: the exact form, with erf
  kSilu = 3,  // x / (1 + e^-x)
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_MATH_ACTIVATION_PARAMS_H_
