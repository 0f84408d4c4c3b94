// The mean of all tokens, channel by channel:
//
//   y[c] = sum_i x[i, c] / rows
//
// rows channels FLOP; moves 4 channels (rows + 1) bytes. Sums in fp32, by groups of 64 rows, so
// that the error grows with rows / 64 + 64 roundings and not with rows. Twin: GlobalAveragePoolCpu.
// Source: ours.
#ifndef MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_H_
#define MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/op.h"
#include "kernels/pool/global_average_pool_params.h"
#include "kernels/simd/isa.h"

namespace mk {

// InvalidArgument naming the first broken precondition of GlobalAveragePoolParams.
Status CheckGlobalAveragePool(const GlobalAveragePoolParams& params);

// REQUIRES CheckGlobalAveragePool(params) is OK.
OpCost GlobalAveragePoolCost(const GlobalAveragePoolParams& params);

// Checks and runs on the context's device. Takes no scratch. Unimplemented on devices without code.
Status GlobalAveragePool(Context& context, const GlobalAveragePoolParams& params);

// The CPU twin: blocks until done. REQUIRES CheckGlobalAveragePool(params) is OK.
Status GlobalAveragePoolCpu(Context& context, const GlobalAveragePoolParams& params,
                            Isa isa = BestIsa());

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POOL_GLOBAL_AVERAGE_POOL_H_
