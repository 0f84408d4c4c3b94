// The product of two tensors, element by element:
//
//   y[i] = a[i] b[i]
//
// count FLOP; moves 12 count bytes. Twin: MultiplyCpu. Source: ours.
#ifndef MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_H_
#define MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/op.h"
#include "kernels/pointwise/multiply_params.h"
#include "kernels/simd/isa.h"

namespace mk {

// InvalidArgument naming the first broken precondition of MultiplyParams.
Status CheckMultiply(const MultiplyParams& params);

// REQUIRES CheckMultiply(params) is OK.
OpCost MultiplyCost(const MultiplyParams& params);

// Checks and runs on the context's device. Takes no scratch. Unimplemented on devices without code.
Status Multiply(Context& context, const MultiplyParams& params);

// The CPU twin: blocks until done. REQUIRES CheckMultiply(params) is OK.
Status MultiplyCpu(Context& context, const MultiplyParams& params, Isa isa = BestIsa());

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_POINTWISE_MULTIPLY_H_
