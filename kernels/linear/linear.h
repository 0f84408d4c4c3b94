// A linear layer over rows, with everything that usually follows it:
//
//   y[i, j] = act(sum_p x[i, p] weight[j, p] + bias[j]) + residual[i, j]
//
// 2 m n k FLOP; moves 4 (m k + n k + m n (+ m n with a residual)) bytes. fp32 throughout; the sum
// is the SGEMM library's. The epilogue runs on each panel of rows while it is in the cache.
// Twin: LinearCpu. Source: ours.
#ifndef MERGEKERNEL_KERNELS_LINEAR_LINEAR_H_
#define MERGEKERNEL_KERNELS_LINEAR_LINEAR_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/linear/linear_params.h"
#include "kernels/op.h"
#include "kernels/simd/isa.h"

namespace mk {

// InvalidArgument naming the first broken precondition of LinearParams.
Status CheckLinear(const LinearParams& params);

// REQUIRES CheckLinear(params) is OK.
OpCost LinearCost(const LinearParams& params);

// Checks and runs on the context's device. Takes no scratch. Unimplemented on devices without code;
// the SGEMM's own failure comes back with its code.
Status Linear(Context& context, const LinearParams& params);

// The CPU twin: blocks until done; rows are split over the host's threads when there is work
// enough. REQUIRES CheckLinear(params) is OK.
Status LinearCpu(Context& context, const LinearParams& params, Isa isa = BestIsa());

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_LINEAR_H_
