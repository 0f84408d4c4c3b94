// The parameters of Linear; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_LINEAR_LINEAR_PARAMS_H_
#define MERGEKERNEL_KERNELS_LINEAR_LINEAR_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/math/activation_params.h"

namespace mk {

struct LinearParams {
  const float* x;       // [m, k] fp32, device, dense
  const float* weight;  // [n, k] fp32, device, dense: as checkpoints store it, [out, in]
  const float* bias;    // [n] fp32, device; null: none
  const float*
      residual;  // [m, n] fp32, device, dense; null: none. May be y when activation is none
  float* y;      // [m, n] fp32, device, dense; does not overlap x
  mk_i64 m;      // rows (tokens), 1 to 2^31 - 1
  mk_i64 n;      // output channels, 1 to 2^31 - 1
  mk_i64 k;      // input channels, 1 to 2^31 - 1
  Activation activation;
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_LINEAR_PARAMS_H_
