#include "kernels/conv/conv3x3_f16.h"

#include <cstdint>
#include <vector>

#include "kernels/conv/conv3x3.h"
#include "kernels/device/convert.h"
#include "kernels/linear/epilogue_f16_host.h"

namespace mk {
namespace {

constexpr char kOp[] = "Conv3x3F16";
constexpr int64_t kMaxSide = int64_t{1} << 24;
constexpr int64_t kMaxChannels = int64_t{1} << 20;
constexpr int64_t kMaxPositions = int64_t{1} << 30;
constexpr int64_t kTaps = 9;
constexpr const char* kKernelNames[kTileCountF16] = {
    "mk_conv3x3_f16_128x128", "mk_conv3x3_f16_128x64", "mk_conv3x3_f16_64x128",
    "mk_conv3x3_f16_64x64", "mk_conv3x3_f16_32x64"};
constexpr TileIndexF16 kTileOfAny = k64x64;

int64_t OutHeight(const Conv3x3F16Params& p) { return Conv3x3OutputSide(p.height, p.stride); }
int64_t OutWidth(const Conv3x3F16Params& p) { return Conv3x3OutputSide(p.width, p.stride); }
int64_t Positions(const Conv3x3F16Params& p) { return OutHeight(p) * OutWidth(p); }

bool MovesBy16Bytes(const Conv3x3F16Params& p) {
  return p.in_channels % 8 == 0 && IsAligned(p.x, 16) && IsAligned(p.weight, 16);
}

Status Launch(Context& context, const Kernel<Conv3x3F16Params>& kernel, TileIndexF16 index,
              const Conv3x3F16Params& p) {
  const TileF16& tile = kTilesF16[index];
  const Dim3 grid = {static_cast<uint32_t>(TileBlocksF16(tile, Positions(p), p.out_channels))};
  const Dim3 block = {static_cast<uint32_t>(TileThreadsF16(tile))};
  return context.Launch(kernel, grid, block, static_cast<uint32_t>(TileSharedBytesF16(tile)), p,
                        Conv3x3F16Cost(p));
}

// The product at one position and output channel.
double SumAt(const Conv3x3F16Params& p, int64_t i, int64_t j, int64_t o) {
  double sum = 0;
  for (int64_t u = 0; u < 3; ++u) {
    for (int64_t v = 0; v < 3; ++v) {
      const int64_t y = p.stride * i + u - 1, x = p.stride * j + v - 1;
      if (y < 0 || y >= p.height || x < 0 || x >= p.width) continue;
      const device::half* seen = p.x + (y * p.width + x) * p.in_channels;
      const device::half* weight = p.weight + ((o * 3 + u) * 3 + v) * p.in_channels;
      for (int64_t c = 0; c < p.in_channels; ++c) {
        sum += static_cast<double>(device::HalfBitsToFloat(seen[c].bits)) *
               device::HalfBitsToFloat(weight[c].bits);
      }
    }
  }
  return sum;
}

}  // namespace

Result<Conv3x3F16Kernels> Conv3x3F16Kernels::Load(const Host& host, const DeviceModule& module,
                                                  mk_i32 sms) {
  MK_TRY(CheckRange(kOp, "sms", sms, 1, 1 << 16));
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  Conv3x3F16Kernels kernels;
  kernels.sms = sms;
  for (int i = 0; i < kTileCountF16; ++i) {
    MK_TRY_ASSIGN(kernels.tiles[i], host.FindKernel<Conv3x3F16Params>(loaded, kKernelNames[i]));
  }
  MK_TRY_ASSIGN(kernels.any, host.FindKernel<Conv3x3F16Params>(loaded, "mk_conv3x3_f16_any"));
  return kernels;
}

void RelayConv3x3F16Weight(const float* stored, int64_t out_channels, int64_t in_channels,
                           device::half* weight) {
  for (int64_t o = 0; o < out_channels; ++o) {
    for (int64_t c = 0; c < in_channels; ++c) {
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        weight[(o * kTaps + tap) * in_channels + c].bits =
            device::FloatToHalfBits(stored[(o * in_channels + c) * kTaps + tap]);
      }
    }
  }
}

Status CheckConv3x3F16(const Conv3x3F16Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckRange(kOp, "height", p.height, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "width", p.width, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "in_channels", p.in_channels, 1, kMaxChannels));
  MK_TRY(CheckRange(kOp, "out_channels", p.out_channels, 1, kMaxChannels));
  MK_TRY(CheckRange(kOp, "stride", p.stride, 1, 2));
  MK_TRY(CheckElements(kOp, "x", p.height * p.width, p.in_channels));
  MK_TRY(CheckElements(kOp, "weight", kTaps * p.in_channels, p.out_channels));
  MK_TRY(CheckRange(kOp, "positions", Positions(p), 1, kMaxPositions));
  MK_TRY(CheckEpilogueF16(kOp, p.epilogue, Positions(p), p.out_channels));
  if (p.epilogue.norm_stats != nullptr) {
    return InvalidArgument("Conv3x3F16: a norm before a convolution is not folded");
  }
  if (p.x == p.epilogue.y) return InvalidArgument("Conv3x3F16: y is x");
  return Ok();
}

LaunchCost Conv3x3F16Cost(const Conv3x3F16Params& p) {
  const int64_t positions = Positions(p);
  const int64_t elements =
      p.height * p.width * p.in_channels + kTaps * p.in_channels * p.out_channels;
  const int64_t bytes = 2 * elements + EpilogueF16Bytes(p.epilogue, positions, p.out_channels);
  return {static_cast<uint64_t>(bytes),
          static_cast<uint64_t>(EpilogueF16Flops(p.epilogue, positions, p.out_channels)),
          static_cast<uint64_t>(2 * kTaps * p.in_channels) *
              static_cast<uint64_t>(positions * p.out_channels)};
}

Status Conv3x3F16WithTile(Context& context, const Conv3x3F16Kernels& kernels,
                          const Conv3x3F16Params& p, TileIndexF16 tile) {
  MK_TRY(CheckConv3x3F16(p));
  if (!MovesBy16Bytes(p)) return InvalidArgument("Conv3x3F16: operands do not move by 16 bytes");
  return Launch(context, kernels.tiles[tile], tile, p);
}

Status Conv3x3F16(Context& context, const Conv3x3F16Kernels& kernels, const Conv3x3F16Params& p) {
  MK_TRY(CheckConv3x3F16(p));
  if (context.device() == DeviceKind::kCpu) {
    Conv3x3F16Cpu(p);
    return Ok();
  }
  if (!MovesBy16Bytes(p)) return Launch(context, kernels.any, kTileOfAny, p);
  const TileIndexF16 tile = ChooseTileF16(Positions(p), p.out_channels, kernels.sms);
  return Launch(context, kernels.tiles[tile], tile, p);
}

void Conv3x3F16Cpu(const Conv3x3F16Params& p) {
  std::vector<double> sums(static_cast<size_t>(p.out_channels));
  for (int64_t i = 0; i < OutHeight(p); ++i) {
    for (int64_t j = 0; j < OutWidth(p); ++j) {
      for (int64_t o = 0; o < p.out_channels; ++o) {
        sums[static_cast<size_t>(o)] = SumAt(p, i, j, o);
      }
      FinishRowF16Cpu(p.epilogue, i * OutWidth(p) + j, p.out_channels, sums);
    }
  }
}

}  // namespace mk
