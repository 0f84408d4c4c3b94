// A 3x3 convolution with padding 1 of a channel-last map, on tensor cores:
//
//   y[i, j, o] = act(bias[o] + sum_{u, v in 0..2, c} x[s i + u - 1, s j + v - 1, c]
//                                                    weight[o, u, v, c])
//
// where x is 0 outside the map and s is the stride; scale, residual and row statistics as in
// epilogue_f16_params.h. An implicit matrix product of positions x out_channels x 9 in_channels:
// what a window sees is gathered on its way into shared memory. 18 ci co FLOP per position; each
// operand once is 2 (height width ci + 9 ci co + positions co) bytes. Twin: Conv3x3F16Cpu.
// Source: ours.
#ifndef MERGEKERNEL_KERNELS_CONV_CONV3X3_F16_H_
#define MERGEKERNEL_KERNELS_CONV_CONV3X3_F16_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/conv/conv3x3_f16_params.h"
#include "kernels/device/image.h"
#include "kernels/linear/tiles_f16.h"
#include "kernels/op.h"

namespace mk {

struct Conv3x3F16Kernels {
  Kernel<Conv3x3F16Params> tiles[kTileCountF16];  // operands by 16 bytes
  Kernel<Conv3x3F16Params> any;                   // of any channels and alignment, tile k64x64
  mk_i32 sms = 16;                                // of the GPU: what tiles are chosen for

  static Result<Conv3x3F16Kernels> Load(const Host& host, const DeviceModule& module,
                                        mk_i32 sms = 16);
};

// [co, ci, 3, 3] fp32, as checkpoints store it, to the layout of Conv3x3F16Params::weight, rounded.
// Host memory.
void RelayConv3x3F16Weight(const float* stored, int64_t out_channels, int64_t in_channels,
                           device::half* weight);

// InvalidArgument naming the first broken precondition of Conv3x3F16Params.
Status CheckConv3x3F16(const Conv3x3F16Params& params);

// REQUIRES CheckConv3x3F16(params) is OK.
LaunchCost Conv3x3F16Cost(const Conv3x3F16Params& params);

// Checks, chooses the tile and launches, once; on the CPU device runs the twin. Takes no scratch.
Status Conv3x3F16(Context& context, const Conv3x3F16Kernels& kernels,
                  const Conv3x3F16Params& params);

// The same with the tile given, for tests and benches. Operands that cannot move by 16 bytes are
// refused.
Status Conv3x3F16WithTile(Context& context, const Conv3x3F16Kernels& kernels,
                          const Conv3x3F16Params& params, TileIndexF16 tile);

// The CPU twin: plain loops on host memory, sums in double, rounded where the device rounds what it
// stores. Blocks; one thread. REQUIRES CheckConv3x3F16(params) is OK.
void Conv3x3F16Cpu(const Conv3x3F16Params& params);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_CONV3X3_F16_H_
