// The selective scan of a map along four directions, merged:
//
//   step_t,c = softplus(sum_r projected_t,r dt_weight[k, r, c] + dt_bias[k, c])
//   h_t,n,c  = exp(step_t,c a[k, n, c]) h_t-1,n,c + step_t,c B_t,n x_t,c
//   y_t,c    = sum_k sum_n C_t,n h_t,n,c + d[c] x_t,c
//
// t runs over the tokens along direction k: 0 row by row, 1 column by column, 2 and 3 the same
// backwards; h before the first token is 0. The directions are walked by index arithmetic: neither
// x nor y is ever permuted, and what every token projects to (r, B, C) was computed once, in the
// map's own order, since a projection of single tokens commutes with their permutation.
//
// Moves 4 L (2 channels + 4 (rank + 2 state)) bytes; 4 L channels (2 rank + 5 state + 9) FLOP. The
// state h is fp32. Twin: CrossScanCpu. Source: Liu et al., "VMamba", arXiv 2401.10166; Gu, Dao,
// "Mamba", arXiv 2312.00752; code ours.
#ifndef MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_H_
#define MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/op.h"
#include "kernels/scan/cross_scan_params.h"
#include "kernels/simd/isa.h"

namespace mk {

// InvalidArgument naming the first broken precondition of CrossScanParams.
Status CheckCrossScan(const CrossScanParams& params);

// REQUIRES CheckCrossScan(params) is OK.
OpCost CrossScanCost(const CrossScanParams& params);

// Checks and runs on the context's device. Takes and gives back 4 state (channels + 63) bytes of
// scratch at most. Unimplemented on devices without code.
Status CrossScan(Context& context, const CrossScanParams& params);

// The CPU twin: blocks until done; channels are independent of each other and are split over the
// host's threads. REQUIRES CheckCrossScan(params) is OK.
Status CrossScanCpu(Context& context, const CrossScanParams& params, Isa isa = BestIsa());

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_SCAN_CROSS_SCAN_H_
