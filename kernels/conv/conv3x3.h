// A 3x3 convolution with padding 1 of a channel-last map:
//
//   y[i, j, o] = bias[o] + sum_{u, v in 0..2, c} x[s i + u - 1, s j + v - 1, c] weight[u, v, c, o]
//
// where x is 0 outside the map and s is the stride. 18 ci co FLOP per output position. The twin
// gathers panels of positions into scratch ([positions, 9 ci]: three runs of 3 ci each) and gives
// each to the SGEMM. Twin: Conv3x3Cpu. Source: ours.
#ifndef MERGEKERNEL_KERNELS_CONV_CONV3X3_H_
#define MERGEKERNEL_KERNELS_CONV_CONV3X3_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/conv/conv3x3_params.h"
#include "kernels/op.h"
#include "kernels/simd/isa.h"

namespace mk {

// Side of the output for a side of the input. REQUIRES side >= 1, stride 1 or 2.
constexpr int64_t Conv3x3OutputSide(int64_t side, int64_t stride) {
  return (side - 1) / stride + 1;
}

// [co, ci, 3, 3], as checkpoints store it, to the layout of Conv3x3Params::weight. The two do not
// overlap.
void RelayConv3x3Weight(const float* stored, int64_t out_channels, int64_t in_channels,
                        float* weight);

// InvalidArgument naming the first broken precondition of Conv3x3Params.
Status CheckConv3x3(const Conv3x3Params& params);

// REQUIRES CheckConv3x3(params) is OK.
OpCost Conv3x3Cost(const Conv3x3Params& params);

// What the op takes of scratch, at most, on a host of up to `threads` threads: 36 ci bytes per
// output position, and no more than about 1 MiB (2.3 KiB ci where that is more) for each of at most
// kMaxScratchThreads.
int64_t Conv3x3ScratchBytes(const Conv3x3Params& params, int64_t threads);

// Checks and runs on the context's device. Takes and gives back scratch as said above.
// Unimplemented on devices without code; the SGEMM's own failure comes back with its code.
Status Conv3x3(Context& context, const Conv3x3Params& params);

// The CPU twin: blocks until done. REQUIRES CheckConv3x3(params) is OK.
Status Conv3x3Cpu(Context& context, const Conv3x3Params& params, Isa isa = BestIsa());

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_CONV3X3_H_
