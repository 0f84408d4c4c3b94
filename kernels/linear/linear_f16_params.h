// The parameters of LinearF16; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_LINEAR_LINEAR_F16_PARAMS_H_
#define MERGEKERNEL_KERNELS_LINEAR_LINEAR_F16_PARAMS_H_

#include "core/abi/mk_types.h"
#include "kernels/device/types.h"
#include "kernels/linear/epilogue_f16_params.h"

namespace mk {

// Pointers are aligned to their element. Where x and weight are aligned to 16 bytes and k is a
// multiple of 8, operands come in by 16 bytes; where y (and residual) and n are, so does y go out.
struct LinearF16Params {
  const device::half* x;       // [m, k] fp16, device, dense
  const device::half* weight;  // [n, k] fp16, device, dense: as checkpoints store it, [out, in]
  mk_i64 m;                    // rows (tokens), 1 to 2^30
  mk_i64 n;                    // output channels, 1 to 2^30
  mk_i64 k;                    // input channels, 1 to 2^30
  EpilogueF16 epilogue;        // bias, residual, y, ...; y does not overlap x
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_LINEAR_F16_PARAMS_H_
