#include "kernels/norm/layer_norm_f16.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/convert.h"
#include "kernels/math/activation.h"

namespace mk {
namespace {

using device::half;

constexpr char kOp[] = "LayerNormF16";
constexpr uint32_t kThreads = 256;
constexpr int64_t kMaxRows = (int64_t{1} << 31) - 1;  // a grid's x
constexpr int64_t kMaxChannels = 4096;
constexpr uintptr_t kVectorBytes = 16;

bool TakesVectors(const LayerNormF16Params& p) {
  return p.channels % 8 == 0 && IsAligned(p.x, kVectorBytes) &&
         IsAligned(p.residual, kVectorBytes) && IsAligned(p.sum, kVectorBytes) &&
         IsAligned(p.weight, kVectorBytes) && IsAligned(p.bias, kVectorBytes) &&
         IsAligned(p.y, kVectorBytes);
}

struct Variant {
  const Kernel<LayerNormF16Params>& kernel;
  int64_t rows_per_block;
};

Variant Choose(const LayerNormF16Kernels& k, const LayerNormF16Params& p) {
  if (!TakesVectors(p)) return {k.any, kThreads / 32};
  if (p.channels <= 64) return {k.lanes8, kThreads / 8};
  if (p.channels <= 128) return {k.lanes16, kThreads / 16};
  if (p.channels <= 256) return {k.lanes32, kThreads / 32};
  if (p.channels <= 512) return {k.chunks2, kThreads / 32};
  if (p.channels <= 1024) return {k.chunks4, kThreads / 32};
  return {k.wide, kThreads / 32};
}

}  // namespace

Result<LayerNormF16Kernels> LayerNormF16Kernels::Load(const Host& host,
                                                      const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  LayerNormF16Kernels k;
  const auto find = [&](const char* name) {
    return host.FindKernel<LayerNormF16Params>(loaded, name);
  };
  MK_TRY_ASSIGN(k.lanes8, find("mk_layer_norm_f16_lanes8"));
  MK_TRY_ASSIGN(k.lanes16, find("mk_layer_norm_f16_lanes16"));
  MK_TRY_ASSIGN(k.lanes32, find("mk_layer_norm_f16_lanes32"));
  MK_TRY_ASSIGN(k.chunks2, find("mk_layer_norm_f16_chunks2"));
  MK_TRY_ASSIGN(k.chunks4, find("mk_layer_norm_f16_chunks4"));
  MK_TRY_ASSIGN(k.wide, find("mk_layer_norm_f16_wide"));
  MK_TRY_ASSIGN(k.any, find("mk_layer_norm_f16_any"));
  return k;
}

Status CheckLayerNormF16(const LayerNormF16Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  if ((p.residual == nullptr) != (p.sum == nullptr)) {
    return InvalidArgument(std::string(kOp) + (p.sum == nullptr ? ": a residual, but sum is null"
                                                                : ": a sum, but residual is null"));
  }
  MK_TRY(CheckRange(kOp, "rows", p.rows, 1, kMaxRows));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxChannels));
  MK_TRY(CheckEpsilon(kOp, p.epsilon));
  MK_TRY(CheckActivation(kOp, p.activation));
  MK_TRY(CheckRange(kOp, "rms", p.rms, 0, 1));
  if (p.y == p.sum) return InvalidArgument(std::string(kOp) + ": y is sum");
  return Ok();
}

LaunchCost LayerNormF16Cost(const LayerNormF16Params& p) {
  const auto elements = static_cast<uint64_t>(p.rows * p.channels);
  const uint64_t passes = p.residual != nullptr ? 4 : 2;
  const uint64_t vectors = p.bias != nullptr ? 2 : 1;
  return {passes * elements * sizeof(half) +
              vectors * static_cast<uint64_t>(p.channels) * sizeof(float),
          8 * elements, 0};
}

Status LayerNormF16(Context& context, const LayerNormF16Kernels& kernels,
                    const LayerNormF16Params& params) {
  MK_TRY(CheckLayerNormF16(params));
  const Variant variant = Choose(kernels, params);
  const auto blocks = static_cast<uint32_t>(CeilDiv(params.rows, variant.rows_per_block));
  return context.Launch(variant.kernel, {blocks}, {kThreads}, 0, params, LayerNormF16Cost(params));
}

void LayerNormF16Cpu(const LayerNormF16Params& p) {
  const auto read = [](half h) { return double(device::HalfBitsToFloat(h.bits)); };
  const auto write = [](double v) { return half{device::FloatToHalfBits(float(v))}; };
  std::vector<double> s(static_cast<size_t>(p.channels));
  for (int64_t i = 0; i < p.rows; ++i) {
    const int64_t row = i * p.channels;
    double mean = 0;
    double variance = 0;
    for (int64_t c = 0; c < p.channels; ++c) {
      s[c] = read(p.x[row + c]);
      if (p.residual != nullptr) {
        p.sum[row + c] = write(s[c] + read(p.residual[row + c]));
        s[c] = read(p.sum[row + c]);
      }
      mean += s[c];
    }
    mean = p.rms != 0 ? 0 : mean / static_cast<double>(p.channels);
    for (int64_t c = 0; c < p.channels; ++c) variance += (s[c] - mean) * (s[c] - mean);
    const double scale =
        1 / std::sqrt(variance / static_cast<double>(p.channels) + double(p.epsilon));
    for (int64_t c = 0; c < p.channels; ++c) {
      const double bias = p.bias != nullptr ? p.bias[c] : 0;
      p.y[row + c] =
          write(ActivateExactly(p.activation, (s[c] - mean) * scale * p.weight[c] + bias));
    }
  }
}

}  // namespace mk
