#include "kernels/conv/depthwise_f16.h"

#include <cstdint>
#include <string>

#include "kernels/device/convert.h"
#include "kernels/math/activation.h"

namespace mk {
namespace {

using device::half;

constexpr char kOp[] = "DepthwiseF16";
constexpr int64_t kMaxSide = int64_t{1} << 20;
constexpr int64_t kMaxThreads = int64_t{1} << 31;  // device code counts them in 32 bits
constexpr int64_t kStrip = 4;
constexpr uint32_t kThreads = 256;

bool TakesFours(const DepthwiseF16Params& p) {
  return p.channels % 4 == 0 && IsAligned(p.x, 8) && IsAligned(p.y, 8) && IsAligned(p.weight, 16) &&
         IsAligned(p.bias, 16);
}

}  // namespace

Result<DepthwiseF16Kernels> DepthwiseF16Kernels::Load(const Host& host,
                                                      const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  DepthwiseF16Kernels k;
  const auto find = [&](const char* name) {
    return host.FindKernel<DepthwiseF16Params>(loaded, name);
  };
  MK_TRY_ASSIGN(k.side3_four, find("mk_depthwise_f16_side3_four"));
  MK_TRY_ASSIGN(k.side3_one, find("mk_depthwise_f16_side3_one"));
  MK_TRY_ASSIGN(k.side7_four, find("mk_depthwise_f16_side7_four"));
  MK_TRY_ASSIGN(k.side7_one, find("mk_depthwise_f16_side7_one"));
  return k;
}

Status CheckDepthwiseF16(const DepthwiseF16Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  MK_TRY(CheckRange(kOp, "height", p.height, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "width", p.width, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxSide));
  const int64_t threads = p.height * CeilDiv(p.width, kStrip) * p.channels;
  if (threads >= kMaxThreads) {
    return InvalidArgument(std::string(kOp) + ": " + std::to_string(p.height) + " x " +
                           std::to_string(p.width) + " x " + std::to_string(p.channels) +
                           " takes " + std::to_string(threads) + " threads, 2^31 or more");
  }
  if (p.side != 3 && p.side != 7) {
    return InvalidArgument(std::string(kOp) + ": side " + std::to_string(p.side) +
                           " is neither 3 nor 7");
  }
  MK_TRY(CheckActivation(kOp, p.activation));
  if (p.x == p.y) return InvalidArgument(std::string(kOp) + ": y is x");
  return Ok();
}

LaunchCost DepthwiseF16Cost(const DepthwiseF16Params& p) {
  const auto channels = static_cast<uint64_t>(p.channels);
  const uint64_t elements =
      static_cast<uint64_t>(p.height) * static_cast<uint64_t>(p.width) * channels;
  const auto taps = static_cast<uint64_t>(p.side * p.side);
  const uint64_t vectors = taps + (p.bias != nullptr ? 1 : 0);
  return {2 * elements * sizeof(half) + vectors * channels * sizeof(float), 2 * taps * elements, 0};
}

Status DepthwiseF16(Context& context, const DepthwiseF16Kernels& kernels,
                    const DepthwiseF16Params& params) {
  MK_TRY(CheckDepthwiseF16(params));
  const bool fours = TakesFours(params);
  const auto& kernel = params.side == 3 ? (fours ? kernels.side3_four : kernels.side3_one)
                                        : (fours ? kernels.side7_four : kernels.side7_one);
  const int64_t threads =
      params.height * CeilDiv(params.width, kStrip) * (params.channels / (fours ? 4 : 1));
  const auto blocks = static_cast<uint32_t>(CeilDiv(threads, kThreads));
  return context.Launch(kernel, {blocks}, {kThreads}, 0, params, DepthwiseF16Cost(params));
}

void DepthwiseF16Cpu(const DepthwiseF16Params& p) {
  const int64_t radius = p.side / 2;
  for (int64_t i = 0; i < p.height; ++i) {
    for (int64_t j = 0; j < p.width; ++j) {
      for (int64_t c = 0; c < p.channels; ++c) {
        double sum = p.bias != nullptr ? p.bias[c] : 0;
        for (int64_t tap = 0; tap < p.side * p.side; ++tap) {
          const int64_t row = i + tap / p.side - radius;
          const int64_t column = j + tap % p.side - radius;
          if (row < 0 || row >= p.height || column < 0 || column >= p.width) continue;
          const half x = p.x[(row * p.width + column) * p.channels + c];
          sum += double(device::HalfBitsToFloat(x.bits)) * p.weight[tap * p.channels + c];
        }
        p.y[(i * p.width + j) * p.channels + c].bits =
            device::FloatToHalfBits(static_cast<float>(ActivateExactly(p.activation, sum)));
      }
    }
  }
}

}  // namespace mk
