// A depthwise 3x3 convolution, stride 1, padding 1, without bias, with an activation behind it:
//
//   y[i, j, c] = act(sum_{u, v in 0..2} x[i + u - 1, j + v - 1, c] weight[u, v, c])
//
// where x is 0 outside the map. 18 FLOP per output; moves 8 height width channels bytes. Channels
// are innermost, so each tap is a product of two contiguous rows. Twin: Depthwise3x3Cpu.
// Source: ours.
#ifndef MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_H_
#define MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/conv/depthwise3x3_params.h"
#include "kernels/op.h"
#include "kernels/simd/isa.h"

namespace mk {

// [channels, 1, 3, 3], as checkpoints store it, to the layout of Depthwise3x3Params::weight. The
// two do not overlap.
void RelayDepthwise3x3Weight(const float* stored, int64_t channels, float* weight);

// InvalidArgument naming the first broken precondition of Depthwise3x3Params.
Status CheckDepthwise3x3(const Depthwise3x3Params& params);

// REQUIRES CheckDepthwise3x3(params) is OK.
OpCost Depthwise3x3Cost(const Depthwise3x3Params& params);

// Checks and runs on the context's device. Takes and gives back 4 channels bytes of scratch.
// Unimplemented on devices without code.
Status Depthwise3x3(Context& context, const Depthwise3x3Params& params);

// The CPU twin: blocks until done. REQUIRES CheckDepthwise3x3(params) is OK.
Status Depthwise3x3Cpu(Context& context, const Depthwise3x3Params& params, Isa isa = BestIsa());

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_DEPTHWISE3X3_H_
