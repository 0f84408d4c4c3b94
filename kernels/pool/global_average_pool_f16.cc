#include "kernels/pool/global_average_pool_f16.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/convert.h"

namespace mk {
namespace {

using device::half;

constexpr char kOp[] = "GlobalAveragePoolF16";
constexpr int64_t kMaxSide = int64_t{1} << 20;
constexpr int64_t kGroup = 64;
constexpr uint32_t kThreads = 512;
constexpr uint32_t kCombineThreads = 256;
constexpr int64_t kCombineChannels = 32;

int64_t Groups(int64_t rows) { return CeilDiv(rows, kGroup); }

LaunchCost PoolCost(const GlobalAveragePoolF16Params& p, bool whole) {
  const auto elements = static_cast<uint64_t>(p.rows * p.channels);
  const auto channels = static_cast<uint64_t>(p.channels);
  const uint64_t weights = p.weight != nullptr ? 2 * channels * sizeof(float) : 0;
  const uint64_t out = whole ? weights + channels * sizeof(half)
                             : static_cast<uint64_t>(Groups(p.rows)) * channels * sizeof(float);
  return {elements * sizeof(half) + out, (p.weight != nullptr ? 7 : 1) * elements, 0};
}

LaunchCost CombineCost(const GlobalAveragePoolF16Params& p) {
  const auto channels = static_cast<uint64_t>(p.channels);
  const auto partials = static_cast<uint64_t>(Groups(p.rows)) * channels;
  const uint64_t weights = p.weight != nullptr ? 2 * channels * sizeof(float) : 0;
  return {partials * sizeof(float) + weights + channels * sizeof(half), partials, 0};
}

}  // namespace

Result<GlobalAveragePoolF16Kernels> GlobalAveragePoolF16Kernels::Load(const Host& host,
                                                                      const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  GlobalAveragePoolF16Kernels k;
  const auto find = [&](const char* name) {
    return host.FindKernel<GlobalAveragePoolF16Launch>(loaded, name);
  };
  MK_TRY_ASSIGN(k.pairs, find("mk_global_average_pool_f16_pairs"));
  MK_TRY_ASSIGN(k.any, find("mk_global_average_pool_f16_any"));
  MK_TRY_ASSIGN(k.combine, find("mk_global_average_pool_f16_combine"));
  return k;
}

Status CheckGlobalAveragePoolF16(const GlobalAveragePoolF16Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  if ((p.weight == nullptr) != (p.bias == nullptr)) {
    return InvalidArgument(std::string(kOp) + (p.bias == nullptr ? ": a weight, but bias is null"
                                                                 : ": a bias, but weight is null"));
  }
  MK_TRY(CheckRange(kOp, "rows", p.rows, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxSide));
  MK_TRY(CheckEpsilon(kOp, p.epsilon));
  if (p.x == p.y) return InvalidArgument(std::string(kOp) + ": y is x");
  return Ok();
}

LaunchCost GlobalAveragePoolF16Cost(const GlobalAveragePoolF16Params& p) {
  if (Groups(p.rows) == 1) return PoolCost(p, true);
  const LaunchCost pool = PoolCost(p, false);
  const LaunchCost combine = CombineCost(p);
  return {pool.bytes + combine.bytes, pool.flops + combine.flops, 0};
}

int64_t GlobalAveragePoolF16Scratch(int64_t rows, int64_t channels) {
  const int64_t groups = Groups(rows);
  return groups == 1 ? 0 : groups * channels * static_cast<int64_t>(sizeof(float));
}

Status GlobalAveragePoolF16(Context& context, const GlobalAveragePoolF16Kernels& kernels,
                            const GlobalAveragePoolF16Params& params) {
  MK_TRY(CheckGlobalAveragePoolF16(params));
  GlobalAveragePoolF16Launch launch = {params, nullptr, Groups(params.rows)};
  const bool whole = launch.groups == 1;
  const bool pairs = params.channels % 2 == 0 && IsAligned(params.x, sizeof(mk_u32));
  const ScratchScope scope(context);
  if (!whole) {
    MK_TRY_ASSIGN(launch.partials, context.Scratch<float>(launch.groups * params.channels));
  }
  MK_TRY(context.Launch(pairs ? kernels.pairs : kernels.any, {static_cast<uint32_t>(launch.groups)},
                        {kThreads}, 0, launch, PoolCost(params, whole)));
  if (whole) return Ok();
  const auto blocks = static_cast<uint32_t>(CeilDiv(params.channels, kCombineChannels));
  return context.Launch(kernels.combine, {blocks}, {kCombineThreads}, 0, launch,
                        CombineCost(params));
}

void GlobalAveragePoolF16Cpu(const GlobalAveragePoolF16Params& p) {
  const auto channels = static_cast<double>(p.channels);
  std::vector<double> row(static_cast<size_t>(p.channels)), sums(row.size());
  for (int64_t i = 0; i < p.rows; ++i) {
    double mean = 0;
    double variance = 0;
    for (int64_t c = 0; c < p.channels; ++c) {
      row[c] = device::HalfBitsToFloat(p.x[i * p.channels + c].bits);
      mean += row[c] / channels;
    }
    for (const double v : row) variance += (v - mean) * (v - mean) / channels;
    const double scale = 1 / std::sqrt(variance + double(p.epsilon));
    for (int64_t c = 0; c < p.channels; ++c) {
      sums[c] += p.weight != nullptr ? (row[c] - mean) * scale : row[c];
    }
  }
  for (int64_t c = 0; c < p.channels; ++c) {
    double y = sums[c] / static_cast<double>(p.rows);
    if (p.weight != nullptr) y = y * p.weight[c] + p.bias[c];
    p.y[c].bits = device::FloatToHalfBits(static_cast<float>(y));
  }
}

}  // namespace mk
