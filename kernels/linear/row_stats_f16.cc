#include "kernels/linear/row_stats_f16.h"

#include <cstdint>

#include "kernels/device/convert.h"

namespace mk {
namespace {

constexpr char kOp[] = "RowStatsF16";
constexpr int64_t kMaxRows = int64_t{1} << 30;
constexpr int64_t kMaxChannels = int64_t{1} << 20;
constexpr int64_t kRowsPerBlock = 8;
constexpr uint32_t kThreads = 256;

}  // namespace

Result<RowStatsF16Kernels> RowStatsF16Kernels::Load(const Host& host, const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  RowStatsF16Kernels kernels;
  MK_TRY_ASSIGN(kernels.row, host.FindKernel<RowStatsF16Params>(loaded, "mk_row_stats_f16"));
  return kernels;
}

Status CheckRowStatsF16(const RowStatsF16Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "stats", p.stats));
  MK_TRY(CheckRange(kOp, "rows", p.rows, 1, kMaxRows));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxChannels));
  return CheckElements(kOp, "x", p.rows, p.channels);
}

LaunchCost RowStatsF16Cost(const RowStatsF16Params& p) {
  const int64_t elements = p.rows * p.channels;
  const auto stats = static_cast<int64_t>(sizeof(RowStats));
  return {static_cast<uint64_t>(2 * elements + p.rows * stats), static_cast<uint64_t>(4 * elements),
          0};
}

Status RowStatsF16(Context& context, const RowStatsF16Kernels& kernels,
                   const RowStatsF16Params& p) {
  MK_TRY(CheckRowStatsF16(p));
  if (context.device() == DeviceKind::kCpu) {
    RowStatsF16Cpu(p);
    return Ok();
  }
  const Dim3 grid = {static_cast<uint32_t>(CeilDiv(p.rows, kRowsPerBlock))};
  return context.Launch(kernels.row, grid, {kThreads}, 0, p, RowStatsF16Cost(p));
}

void RowStatsF16Cpu(const RowStatsF16Params& p) {
  for (int64_t i = 0; i < p.rows; ++i) {
    const device::half* row = p.x + i * p.channels;
    double mean = 0, m2 = 0;
    for (int64_t c = 0; c < p.channels; ++c) mean += device::HalfBitsToFloat(row[c].bits);
    mean /= static_cast<double>(p.channels);
    for (int64_t c = 0; c < p.channels; ++c) {
      const double d = device::HalfBitsToFloat(row[c].bits) - mean;
      m2 += d * d;
    }
    p.stats[i] = {static_cast<float>(mean), static_cast<float>(m2)};
  }
}

}  // namespace mk
