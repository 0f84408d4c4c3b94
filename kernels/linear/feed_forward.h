// The second half of a transformer-like block, in place:
//
//   x[i, :] += W2 act(W1 LN(x[i, :]) + b1) + b2
//
// Rows depend on nothing but themselves, so the twin takes them tile by tile: the hidden layer of a
// whole map, several times the map itself, never exists. 4 rows channels hidden FLOP. Twin:
// FeedForwardCpu. Source: ours.
#ifndef MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_H_
#define MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/linear/feed_forward_params.h"
#include "kernels/op.h"
#include "kernels/simd/isa.h"

namespace mk {

// InvalidArgument naming the first broken precondition of FeedForwardParams.
Status CheckFeedForward(const FeedForwardParams& params);

// REQUIRES CheckFeedForward(params) is OK.
OpCost FeedForwardCost(const FeedForwardParams& params);

// What the op takes of scratch, at most, on a host of `threads` threads: a tile for each
// of at most kMaxScratchThreads.
int64_t FeedForwardScratchBytes(int64_t rows, int64_t channels, int64_t hidden, int64_t threads);

// Checks and runs on the context's device. Takes and gives back scratch as said above.
// Unimplemented on devices without code; the SGEMM's own failure comes back with its code, and x is
// then partly done.
Status FeedForward(Context& context, const FeedForwardParams& params);

// The CPU twin: blocks until done; tiles of rows are split over the host's threads. The tiles do
// not depend on the number of threads. REQUIRES CheckFeedForward(params) is OK.
Status FeedForwardCpu(Context& context, const FeedForwardParams& params, Isa isa = BestIsa());

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_H_
