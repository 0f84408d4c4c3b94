#include "kernels/linear/epilogue_f16_host.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/device/convert.h"
#include "kernels/math/activation.h"
#include "kernels/op.h"

namespace mk {
namespace {

struct MeanAndScale {
  double mean = 0, rstd = 1;
};

MeanAndScale RowNorm(const EpilogueF16& e, int64_t i) {
  const int64_t width = e.norm_groups == 1 ? e.norm_columns : kStatsGroup;
  const RowStats* stats = e.norm_stats + i * e.norm_groups;
  const auto columns = static_cast<double>(e.norm_columns);
  double mean = 0, m2 = 0;
  for (int64_t g = 0; g < e.norm_groups; ++g) {
    mean += static_cast<double>(std::min(e.norm_columns - g * width, width)) * stats[g].mean;
  }
  mean /= columns;
  for (int64_t g = 0; g < e.norm_groups; ++g) {
    const double d = stats[g].mean - mean;
    m2 += stats[g].m2 + static_cast<double>(std::min(e.norm_columns - g * width, width)) * d * d;
  }
  return {mean, 1 / std::sqrt(m2 / columns + e.norm_epsilon)};
}

RowStats StatsOf(const double* values, int64_t count) {
  double mean = 0, m2 = 0;
  for (int64_t j = 0; j < count; ++j) mean += values[j];
  mean /= static_cast<double>(count);
  for (int64_t j = 0; j < count; ++j) m2 += (values[j] - mean) * (values[j] - mean);
  return {static_cast<float>(mean), static_cast<float>(m2)};
}

}  // namespace

Status CheckEpilogueF16(const char* op, const EpilogueF16& e, int64_t m, int64_t n) {
  const std::string who = op;
  if ((e.y == nullptr) == (e.y_fp32 == nullptr)) {
    return InvalidArgument(who + ": " + (e.y == nullptr ? "neither" : "both") +
                           " of y and y_fp32 given");
  }
  MK_TRY(CheckElements(op, "y", m, n));
  MK_TRY(CheckActivation(op, e.activation));
  if (!std::isfinite(e.scale)) return InvalidArgument(who + ": scale is not finite");
  if ((e.norm_stats == nullptr) != (e.norm_sums == nullptr)) {
    return InvalidArgument(who + ": one of norm_stats and norm_sums is null");
  }
  if (e.norm_stats == nullptr) return Ok();
  MK_TRY(CheckRange(op, "norm_columns", e.norm_columns, 1, int64_t{1} << 30));
  if (e.norm_groups != 1 && e.norm_groups != CeilDiv(e.norm_columns, kStatsGroup)) {
    return InvalidArgument(who + ": norm_groups " + std::to_string(e.norm_groups) +
                           " is neither 1 nor " +
                           std::to_string(CeilDiv(e.norm_columns, kStatsGroup)));
  }
  if (!(e.norm_epsilon > 0) || !std::isfinite(e.norm_epsilon)) {
    return InvalidArgument(who + ": norm_epsilon " + std::to_string(e.norm_epsilon) +
                           " is not positive");
  }
  return Ok();
}

int64_t EpilogueF16Bytes(const EpilogueF16& e, int64_t m, int64_t n) {
  int64_t bytes = m * n * (e.y != nullptr ? 2 : 4);
  if (e.residual != nullptr) bytes += 2 * m * n;
  if (e.bias != nullptr) bytes += 4 * n;
  const auto stats = static_cast<int64_t>(sizeof(RowStats));
  if (e.norm_stats != nullptr) bytes += 4 * n + m * e.norm_groups * stats;
  if (e.y_stats != nullptr) bytes += m * CeilDiv(n, kStatsGroup) * stats;
  return bytes;
}

int64_t EpilogueF16Flops(const EpilogueF16& e, int64_t m, int64_t n) {
  int64_t flops = 2;  // scale and bias
  if (e.norm_stats != nullptr) flops += 3;
  if (e.residual != nullptr) flops += 1;
  if (e.y_stats != nullptr) flops += 4;
  switch (e.activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      flops += 1;
      break;
    case Activation::kGelu:
      flops += 5;
      break;
    case Activation::kSilu:
      flops += 4;
      break;
  }
  return m * n * flops;
}

void FinishRowF16Cpu(const EpilogueF16& e, int64_t i, int64_t n, const std::vector<double>& sums) {
  const MeanAndScale norm = e.norm_stats != nullptr ? RowNorm(e, i) : MeanAndScale{};
  std::vector<double> stored;
  for (int64_t j = 0; j < n; ++j) {
    double v = sums[static_cast<size_t>(j)];
    if (e.norm_stats != nullptr) v = norm.rstd * (v - norm.mean * e.norm_sums[j]);
    v = ActivateExactly(e.activation, e.scale * v + (e.bias != nullptr ? e.bias[j] : 0.0));
    const int64_t at = i * n + j;
    if (e.residual != nullptr) v += device::HalfBitsToFloat(e.residual[at].bits);
    if (e.y != nullptr) {
      e.y[at].bits = device::FloatToHalfBits(static_cast<float>(v));
      stored.push_back(device::HalfBitsToFloat(e.y[at].bits));
    } else {
      e.y_fp32[at] = static_cast<float>(v);
      stored.push_back(e.y_fp32[at]);
    }
  }
  if (e.y_stats == nullptr) return;
  for (int64_t j = 0; j < n; j += kStatsGroup) {
    e.y_stats[i * CeilDiv(n, kStatsGroup) + j / kStatsGroup] =
        StatsOf(&stored[static_cast<size_t>(j)], std::min<int64_t>(kStatsGroup, n - j));
  }
}

}  // namespace mk
