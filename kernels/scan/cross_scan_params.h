// The parameters of CrossScan; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_PARAMS_H_
#define MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_PARAMS_H_

#include "core/abi/mk_types.h"

namespace mk {

// L = height * width tokens; token (i, j) of the map has the index i * width + j.
struct CrossScanParams {
  const float* x;          // [height, width, channels] fp32, device, dense
  const float* projected;  // [L, 4, rank + 2 state] fp32, device, dense: for each token and
                           // direction the rank step inputs r, then B, then C
  const float* dt_weight;  // [4, rank, channels] fp32, device, dense
  const float* dt_bias;    // [4, channels] fp32, device, dense
  const float* a;          // [4, state, channels] fp32, device, dense: A, so -exp(A_log)
  const float* d;          // [channels] fp32, device: the sum of D over the four directions
  float* y;                // [height, width, channels] fp32, device, dense; does not overlap x
  mk_i64 height;           // 1 to 2^24
  mk_i64 width;            // 1 to 2^24
  mk_i64 channels;         // 1 to 2^20
  mk_i64 rank;             // 1 to 2^16
  mk_i64 state;            // N, 1 to 256
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_PARAMS_H_
