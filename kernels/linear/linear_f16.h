// A linear layer over rows on tensor cores, with everything that usually stands around it:
//
//   y[i, j] = act(scale sum_p x[i, p] weight[j, p] + bias[j]) + residual[i, j]
//
// fp16 in, fp16 or fp32 out, fp32 sums; a LayerNorm of x before it and the row statistics of y for
// the next one behind it, as epilogue_f16_params.h explains. 2 m n k FLOP; each operand once is
// 2 (m k + n k + m n (+ m n with a residual)) bytes, what a GPU moves is in linear_f16.cu. Twin:
// LinearF16Cpu. Source: ours.
#ifndef MERGEKERNEL_KERNELS_LINEAR_LINEAR_F16_H_
#define MERGEKERNEL_KERNELS_LINEAR_LINEAR_F16_H_

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/linear/linear_f16_params.h"
#include "kernels/linear/tiles_f16.h"
#include "kernels/op.h"

namespace mk {

struct LinearF16Kernels {
  Kernel<LinearF16Params> tiles[kTileCountF16];  // operands by 16 bytes
  Kernel<LinearF16Params> any;                   // of any k and alignment, tile k64x64
  mk_i32 sms = 16;                               // of the GPU: what tiles are chosen for

  // During create. `sms`: AGX Orin's, where the host says nothing better.
  static Result<LinearF16Kernels> Load(const Host& host, const DeviceModule& module,
                                       mk_i32 sms = 16);
};

// InvalidArgument naming the first broken precondition of LinearF16Params and EpilogueF16.
Status CheckLinearF16(const LinearF16Params& params);

// REQUIRES CheckLinearF16(params) is OK.
LaunchCost LinearF16Cost(const LinearF16Params& params);

// Checks, chooses the tile and launches, once; on the CPU device runs the twin. Takes no scratch.
Status LinearF16(Context& context, const LinearF16Kernels& kernels, const LinearF16Params& params);

// The same with the tile given, for tests and benches. Operands that cannot move by 16 bytes are
// refused.
Status LinearF16WithTile(Context& context, const LinearF16Kernels& kernels,
                         const LinearF16Params& params, TileIndexF16 tile);

// The CPU twin: plain loops on host memory, sums in double, rounded where the device rounds what it
// stores. Blocks; one thread. REQUIRES CheckLinearF16(params) is OK.
void LinearF16Cpu(const LinearF16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_LINEAR_F16_H_
