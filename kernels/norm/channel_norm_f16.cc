#include "kernels/norm/channel_norm_f16.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/convert.h"
#include "kernels/math/activation.h"

namespace mk {
namespace {

using device::half;

constexpr char kOp[] = "ChannelNormF16";
constexpr int64_t kMaxImages = int64_t{1} << 20;
constexpr int64_t kMaxChannels = 2048;  // 64 KB of shared memory for a tile of 16
constexpr int64_t kMaxPositions = int64_t{1} << 26;
constexpr int64_t kMaxTiles = (int64_t{1} << 31) - 1;  // a grid's x
constexpr uint32_t kThreads = 256;
constexpr int64_t kWide = 64, kNarrow = 16;           // positions of a tile
constexpr int64_t kMaxWideChannels = 384;             // 48 KB: three blocks on an SM of sm_87
constexpr int64_t kBlocksForAllMultiprocessors = 32;  // two on each of the 16 of AGX Orin

struct Variant {
  const Kernel<ChannelNormF16Launch>& kernel;
  int64_t tile;
};

// Whether rows of positions can be read by so many at once.
bool TakesPieces(const ChannelNormF16Params& p, int64_t width) {
  const auto bytes = static_cast<uintptr_t>(width) * sizeof(half);
  return p.positions % width == 0 && IsAligned(p.x, bytes) && IsAligned(p.residual, bytes) &&
         IsAligned(p.sum, bytes) && IsAligned(p.y, bytes);
}

Variant Choose(const ChannelNormF16Kernels& k, const ChannelNormF16Params& p) {
  if (TakesPieces(p, 8)) {
    const bool wide = p.channels <= kMaxWideChannels &&
                      p.images * CeilDiv(p.positions, kWide) >= kBlocksForAllMultiprocessors;
    return wide ? Variant{k.tile64, kWide} : Variant{k.tile16, kNarrow};
  }
  return {TakesPieces(p, 2) ? k.pairs : k.any, kNarrow};
}

}  // namespace

Result<ChannelNormF16Kernels> ChannelNormF16Kernels::Load(const Host& host,
                                                          const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  ChannelNormF16Kernels k;
  const auto find = [&](const char* name) {
    return host.FindKernel<ChannelNormF16Launch>(loaded, name);
  };
  MK_TRY_ASSIGN(k.tile64, find("mk_channel_norm_f16_tile64"));
  MK_TRY_ASSIGN(k.tile16, find("mk_channel_norm_f16_tile16"));
  MK_TRY_ASSIGN(k.pairs, find("mk_channel_norm_f16_pairs"));
  MK_TRY_ASSIGN(k.any, find("mk_channel_norm_f16_any"));
  return k;
}

Status CheckChannelNormF16(const ChannelNormF16Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  if (p.sum != nullptr && p.residual == nullptr) {
    return InvalidArgument(std::string(kOp) + ": a sum, but residual is null");
  }
  if (p.y == p.sum) return InvalidArgument(std::string(kOp) + ": y is sum");
  MK_TRY(CheckRange(kOp, "images", p.images, 1, kMaxImages));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxChannels));
  MK_TRY(CheckRange(kOp, "positions", p.positions, 1, kMaxPositions));
  MK_TRY(CheckElements(kOp, "x", p.images, p.channels * p.positions));
  MK_TRY(CheckRange(kOp, "tiles of 16 positions", p.images * CeilDiv(p.positions, kNarrow), 1,
                    kMaxTiles));
  MK_TRY(CheckEpsilon(kOp, p.epsilon));
  MK_TRY(CheckActivation(kOp, p.activation));
  return Ok();
}

LaunchCost ChannelNormF16Cost(const ChannelNormF16Params& p) {
  const auto elements = static_cast<uint64_t>(p.images * p.channels * p.positions);
  const uint64_t operands = 2 + (p.residual != nullptr ? 1 : 0) + (p.sum != nullptr ? 1 : 0);
  const uint64_t vectors = p.bias != nullptr ? 2 : 1;
  return {operands * elements * sizeof(half) +
              vectors * static_cast<uint64_t>(p.channels) * sizeof(float),
          8 * elements, 0};
}

Status ChannelNormF16(Context& context, const ChannelNormF16Kernels& kernels,
                      const ChannelNormF16Params& params) {
  MK_TRY(CheckChannelNormF16(params));
  const Variant variant = Choose(kernels, params);
  const ChannelNormF16Launch launch = {params, CeilDiv(params.positions, variant.tile)};
  const auto blocks = static_cast<uint32_t>(params.images * launch.tiles);
  const auto shared_bytes =
      static_cast<uint32_t>(variant.tile * params.channels * static_cast<int64_t>(sizeof(half)));
  return context.Launch(variant.kernel, {blocks}, {kThreads}, shared_bytes, launch,
                        ChannelNormF16Cost(params));
}

void ChannelNormF16Cpu(const ChannelNormF16Params& p) {
  const auto read = [](half h) { return double(device::HalfBitsToFloat(h.bits)); };
  const auto round = [](double v) { return half{device::FloatToHalfBits(float(v))}; };
  const auto count = static_cast<double>(p.channels);
  std::vector<double> s(static_cast<size_t>(p.channels));
  for (int64_t n = 0; n < p.images; ++n) {
    for (int64_t i = 0; i < p.positions; ++i) {
      const auto at = [&](int64_t c) { return (n * p.channels + c) * p.positions + i; };
      double mean = 0;
      double variance = 0;
      for (int64_t c = 0; c < p.channels; ++c) {
        s[c] = read(p.x[at(c)]);
        if (p.residual != nullptr) s[c] = read(round(s[c] + read(p.residual[at(c)])));
        if (p.sum != nullptr) p.sum[at(c)] = round(s[c]);
        mean += s[c] / count;
      }
      for (const double v : s) variance += (v - mean) * (v - mean) / count;
      const double scale = 1 / std::sqrt(variance + double(p.epsilon));
      for (int64_t c = 0; c < p.channels; ++c) {
        const double bias = p.bias != nullptr ? p.bias[c] : 0;
        p.y[at(c)] =
            round(ActivateExactly(p.activation, (s[c] - mean) * scale * p.weight[c] + bias));
      }
    }
  }
}

}  // namespace mk
