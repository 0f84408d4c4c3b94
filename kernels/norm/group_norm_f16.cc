#include "kernels/norm/group_norm_f16.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "kernels/device/convert.h"
#include "kernels/math/activation.h"

namespace mk {
namespace {

using device::half;

constexpr char kOp[] = "GroupNormF16";
constexpr int64_t kMaxSide = int64_t{1} << 20;
constexpr int64_t kMaxRowElements = int64_t{1} << 26;
constexpr int64_t kMaxRows = (int64_t{1} << 31) - 1;  // a grid's x
constexpr uintptr_t kVectorBytes = 16;
// As in group_norm_f16.cu.
constexpr int64_t kWarpRow = 1024, kBlockRow = 16384, kSlice = 8192;
constexpr uint32_t kWarpThreads = 256, kBlockThreads = 512, kSliceThreads = 256;
constexpr int64_t kRowsPerBlock = 8;

int64_t RowElements(const GroupNormF16Params& p) { return p.channels / p.groups * p.positions; }
bool IsCut(const GroupNormF16Params& p) { return RowElements(p) > kBlockRow; }
int64_t Slices(const GroupNormF16Params& p) { return CeilDiv(RowElements(p), kSlice); }

bool TakesVectors(const GroupNormF16Params& p) {
  return RowElements(p) % 8 == 0 && IsAligned(p.x, kVectorBytes) &&
         IsAligned(p.residual, kVectorBytes) && IsAligned(p.sum, kVectorBytes) &&
         IsAligned(p.y, kVectorBytes);
}

uint64_t Elements(const GroupNormF16Params& p) {
  return static_cast<uint64_t>(p.images * p.channels * p.positions);
}
uint64_t WeightBytes(const GroupNormF16Params& p) {
  return (p.bias != nullptr ? 2u : 1u) * static_cast<uint64_t>(p.channels) * sizeof(float);
}
uint64_t PartialBytes(const GroupNormF16Params& p) {
  return static_cast<uint64_t>(p.images * p.groups * Slices(p)) * 2 * sizeof(float);
}

// x read, and the residual, and the sum written.
uint64_t FirstPassBytes(const GroupNormF16Params& p) {
  const uint64_t operands = 1 + (p.residual != nullptr ? 1 : 0) + (p.sum != nullptr ? 1 : 0);
  return operands * Elements(p) * sizeof(half);
}

LaunchCost WholeCost(const GroupNormF16Params& p) {
  return {FirstPassBytes(p) + Elements(p) * sizeof(half) + WeightBytes(p), 8 * Elements(p), 0};
}
LaunchCost StatisticsCost(const GroupNormF16Params& p) {
  return {FirstPassBytes(p) + PartialBytes(p), 4 * Elements(p), 0};
}
LaunchCost ApplyCost(const GroupNormF16Params& p) {
  const uint64_t operands = p.residual != nullptr && p.sum == nullptr ? 3 : 2;
  return {operands * Elements(p) * sizeof(half) + WeightBytes(p) + PartialBytes(p), 4 * Elements(p),
          0};
}

}  // namespace

Result<GroupNormF16Kernels> GroupNormF16Kernels::Load(const Host& host,
                                                      const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  GroupNormF16Kernels k;
  const auto find = [&](const char* name) {
    return host.FindKernel<GroupNormF16Launch>(loaded, name);
  };
  MK_TRY_ASSIGN(k.warp, find("mk_group_norm_f16_warp"));
  MK_TRY_ASSIGN(k.warp_any, find("mk_group_norm_f16_warp_any"));
  MK_TRY_ASSIGN(k.block, find("mk_group_norm_f16_block"));
  MK_TRY_ASSIGN(k.block_any, find("mk_group_norm_f16_block_any"));
  MK_TRY_ASSIGN(k.statistics, find("mk_group_norm_f16_statistics"));
  MK_TRY_ASSIGN(k.statistics_any, find("mk_group_norm_f16_statistics_any"));
  MK_TRY_ASSIGN(k.apply, find("mk_group_norm_f16_apply"));
  MK_TRY_ASSIGN(k.apply_any, find("mk_group_norm_f16_apply_any"));
  return k;
}

Status CheckGroupNormF16(const GroupNormF16Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  if (p.sum != nullptr && p.residual == nullptr) {
    return InvalidArgument(std::string(kOp) + ": a sum, but residual is null");
  }
  if (p.y == p.sum) return InvalidArgument(std::string(kOp) + ": y is sum");
  MK_TRY(CheckRange(kOp, "images", p.images, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "positions", p.positions, 1, kMaxRowElements));
  MK_TRY(CheckRange(kOp, "groups", p.groups, 1, p.channels));
  if (p.channels % p.groups != 0) {
    return InvalidArgument(std::string(kOp) + ": groups " + std::to_string(p.groups) +
                           " do not divide channels " + std::to_string(p.channels));
  }
  MK_TRY(CheckRange(kOp, "images * groups", p.images * p.groups, 1, kMaxRows));
  MK_TRY(CheckRange(kOp, "elements of a group", RowElements(p), 1, kMaxRowElements));
  MK_TRY(CheckElements(kOp, "x", p.images * p.groups, RowElements(p)));
  MK_TRY(CheckEpsilon(kOp, p.epsilon));
  MK_TRY(CheckActivation(kOp, p.activation));
  return Ok();
}

LaunchCost GroupNormF16Cost(const GroupNormF16Params& p) {
  if (!IsCut(p)) return WholeCost(p);
  const LaunchCost statistics = StatisticsCost(p);
  const LaunchCost apply = ApplyCost(p);
  return {statistics.bytes + apply.bytes, statistics.flops + apply.flops, 0};
}

int64_t GroupNormF16Scratch(const GroupNormF16Params& p) {
  return IsCut(p) ? static_cast<int64_t>(PartialBytes(p)) : 0;
}

Status GroupNormF16(Context& context, const GroupNormF16Kernels& k,
                    const GroupNormF16Params& params) {
  MK_TRY(CheckGroupNormF16(params));
  const bool vectors = TakesVectors(params);
  GroupNormF16Launch launch = {params,
                               nullptr,
                               params.images * params.groups,
                               params.channels / params.groups,
                               RowElements(params),
                               Slices(params)};
  if (launch.row_elements <= kWarpRow) {
    const auto blocks = static_cast<uint32_t>(CeilDiv(launch.rows, kRowsPerBlock));
    return context.Launch(vectors ? k.warp : k.warp_any, {blocks}, {kWarpThreads}, 0, launch,
                          WholeCost(params));
  }
  if (!IsCut(params)) {
    return context.Launch(vectors ? k.block : k.block_any, {static_cast<uint32_t>(launch.rows)},
                          {kBlockThreads}, 0, launch, WholeCost(params));
  }
  const ScratchScope scope(context);
  MK_TRY_ASSIGN(launch.partials, context.Scratch<float>(2 * launch.rows * launch.slices));
  const auto blocks = static_cast<uint32_t>(launch.rows * launch.slices);
  MK_TRY(context.Launch(vectors ? k.statistics : k.statistics_any, {blocks}, {kSliceThreads}, 0,
                        launch, StatisticsCost(params)));
  return context.Launch(vectors ? k.apply : k.apply_any, {blocks}, {kSliceThreads}, 0, launch,
                        ApplyCost(params));
}

void GroupNormF16Cpu(const GroupNormF16Params& p) {
  const auto read = [](half h) { return double(device::HalfBitsToFloat(h.bits)); };
  const auto round = [](double v) { return half{device::FloatToHalfBits(float(v))}; };
  const int64_t elements = RowElements(p);
  const auto count = static_cast<double>(elements);
  for (int64_t row = 0; row < p.images * p.groups; ++row) {
    const int64_t begin = row * elements;
    const auto normed = [&](int64_t e) {
      const double x = read(p.x[begin + e]);
      return p.residual != nullptr ? read(round(x + read(p.residual[begin + e]))) : x;
    };
    double mean = 0;
    double variance = 0;
    for (int64_t e = 0; e < elements; ++e) mean += normed(e) / count;
    for (int64_t e = 0; e < elements; ++e) {
      variance += (normed(e) - mean) * (normed(e) - mean) / count;
    }
    const double scale = 1 / std::sqrt(variance + double(p.epsilon));
    for (int64_t e = 0; e < elements; ++e) {
      const int64_t c = row % p.groups * (p.channels / p.groups) + e / p.positions;
      const double s = normed(e);
      const double bias = p.bias != nullptr ? p.bias[c] : 0;
      if (p.sum != nullptr) p.sum[begin + e] = round(s);
      p.y[begin + e] =
          round(ActivateExactly(p.activation, (s - mean) * scale * p.weight[c] + bias));
    }
  }
}

}  // namespace mk
