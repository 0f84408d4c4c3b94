// The second half of a transformer-like block, in place, on tensor cores:
//
//   x[i, :] += W2 act(W1 LN(x[i, :]) + b1) + b2
//
// fp16 storage, fp32 sums, statistics and activations; the norm's weight and bias are folded into
// W1 and b1. 4 rows channels hidden FLOP. Two forms. Fused, one launch: a block keeps its rows of
// x, and the hidden layer never leaves the registers; moves 4 rows channels bytes, and the weights
// from L2. Separate, three launches (row statistics, two LinearF16): the hidden layer goes through
// memory, another 4 rows hidden bytes, but few rows are spread over more blocks. Twin:
// FeedForwardF16Cpu. Source: ours.
#ifndef MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_F16_H_
#define MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_F16_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/linear/feed_forward_f16_params.h"
#include "kernels/linear/linear_f16.h"
#include "kernels/linear/row_stats_f16.h"
#include "kernels/op.h"

namespace mk {

enum class FeedForwardF16Form {
  kSeparate,
  kFused96,   // up to 96 channels
  kFused192,  // up to 192 channels
};

struct FeedForwardF16Kernels {
  Kernel<FeedForwardF16Params> fused96, fused192;
  LinearF16Kernels linear;
  RowStatsF16Kernels row_stats;

  // During create. `linear.sms` is what the form is chosen for.
  static Result<FeedForwardF16Kernels> Load(const Host& host, const DeviceModule& module,
                                            const LinearF16Kernels& linear,
                                            const RowStatsF16Kernels& row_stats);
};

// InvalidArgument naming the first broken precondition of FeedForwardF16Params.
Status CheckFeedForwardF16(const FeedForwardF16Params& params);

// Pure. Fused where the operands can (their head comment says when), the channels are few enough,
// and there is a block for each SM: fewer leave some idle for longer than the hidden layer takes
// through L2 (predicted, to be measured). REQUIRES CheckFeedForwardF16(params) is OK.
FeedForwardF16Form ChooseFeedForwardF16(const FeedForwardF16Params& params, mk_i32 sms);

// What the op takes of scratch: nothing when fused, else 2 rows hidden + 8 rows bytes.
int64_t FeedForwardF16ScratchBytes(const FeedForwardF16Params& params, FeedForwardF16Form form);

// Of the fused form: each operand once.
LaunchCost FeedForwardF16Cost(const FeedForwardF16Params& params);

// Checks, chooses the form and launches; on the CPU device runs the twin. Takes and gives back
// scratch as said above.
Status FeedForwardF16(Context& context, const FeedForwardF16Kernels& kernels,
                      const FeedForwardF16Params& params);

// The same with the form given, for tests and benches. A fused form that cannot is refused.
Status FeedForwardF16As(Context& context, const FeedForwardF16Kernels& kernels,
                        const FeedForwardF16Params& params, FeedForwardF16Form form);

// The CPU twin: plain loops on host memory, in double; the hidden layer and x are rounded to fp16.
// Blocks; one thread. REQUIRES CheckFeedForwardF16(params) is OK.
void FeedForwardF16Cpu(const FeedForwardF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_FEED_FORWARD_F16_H_
