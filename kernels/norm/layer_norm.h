// LayerNorm over the channels of each row, with an optional activation behind it:
//
//   mean_i = sum_c x[i, c] / C            var_i = sum_c (x[i, c] - mean_i)^2 / C
//   y[i, c] = act((x[i, c] - mean_i) / sqrt(var_i + epsilon) * weight[c] + bias[c])
//
// On channel-last activations this is what models call LayerNorm2d. Moves 8 rows C bytes; two
// passes over a row that is in the cache, so that the variance does not cancel. Statistics in fp32.
// Twin: LayerNormCpu. Source: Ba, Kiros, Hinton, arXiv 1607.06450; code ours.
#ifndef MERGEKERNEL_KERNELS_NORM_LAYER_NORM_H_
#define MERGEKERNEL_KERNELS_NORM_LAYER_NORM_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/norm/layer_norm_params.h"
#include "kernels/op.h"
#include "kernels/simd/isa.h"

namespace mk {

// InvalidArgument naming the first broken precondition of LayerNormParams.
Status CheckLayerNorm(const LayerNormParams& params);

// REQUIRES CheckLayerNorm(params) is OK.
OpCost LayerNormCost(const LayerNormParams& params);

// Checks and runs on the context's device. Takes no scratch. Unimplemented on devices without code.
Status LayerNorm(Context& context, const LayerNormParams& params);

// The CPU twin: blocks until done. REQUIRES CheckLayerNorm(params) is OK.
Status LayerNormCpu(Context& context, const LayerNormParams& params, Isa isa = BestIsa());

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_NORM_LAYER_NORM_H_
