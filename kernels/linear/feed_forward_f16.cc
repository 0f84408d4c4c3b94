#include "kernels/linear/feed_forward_f16.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/convert.h"
#include "kernels/linear/epilogue_f16_host.h"
#include "kernels/math/activation.h"

namespace mk {
namespace {

constexpr char kOp[] = "FeedForwardF16";
constexpr int64_t kMaxRows = int64_t{1} << 30;
constexpr int64_t kMaxChannels = int64_t{1} << 20;
constexpr uint32_t kThreads = 128;

// What feed_forward_f16.cu compiles.
struct FusedShape {
  int64_t channels, rows;  // of a block
  uint32_t shared_bytes;   // x, and the stages of both weights
};
constexpr FusedShape kFused96 = {96, 128, 2 * (128 * 96 + 3 * (2 * 32 * 96))};
constexpr FusedShape kFused192 = {192, 64, 2 * (64 * 192 + 2 * (2 * 32 * 192))};

// REQUIRES a fused form.
const FusedShape& ShapeOf(FeedForwardF16Form form) {
  return form == FeedForwardF16Form::kFused96 ? kFused96 : kFused192;
}

bool CanFuse(const FeedForwardF16Params& p, const FusedShape& shape) {
  return p.channels <= shape.channels && p.channels % 8 == 0 && p.hidden % 8 == 0 &&
         IsAligned(p.x, 16) && IsAligned(p.weight1, 16) && IsAligned(p.weight2, 16);
}

Status RunSeparate(Context& context, const FeedForwardF16Kernels& kernels,
                   const FeedForwardF16Params& p) {
  const ScratchScope scope(context);
  MK_TRY_ASSIGN(device::half* const hidden, context.Scratch<device::half>(p.rows * p.hidden));
  MK_TRY_ASSIGN(RowStats* const stats, context.Scratch<RowStats>(p.rows));
  MK_TRY(RowStatsF16(context, kernels.row_stats, {p.x, stats, p.rows, p.channels}));
  LinearF16Params first = {p.x, p.weight1, p.rows, p.hidden, p.channels, {}};
  first.epilogue.bias = p.bias1;
  first.epilogue.y = hidden;
  first.epilogue.norm_stats = stats;
  first.epilogue.norm_sums = p.sums1;
  first.epilogue.norm_columns = p.channels;
  first.epilogue.norm_groups = 1;
  first.epilogue.norm_epsilon = p.epsilon;
  first.epilogue.activation = p.activation;
  MK_TRY(LinearF16(context, kernels.linear, first));
  LinearF16Params second = {hidden, p.weight2, p.rows, p.channels, p.hidden, {}};
  second.epilogue.bias = p.bias2;
  second.epilogue.residual = p.x;
  second.epilogue.y = p.x;
  second.epilogue.y_stats = p.x_stats;
  return LinearF16(context, kernels.linear, second);
}

// LN of a row, without weight and bias.
std::vector<double> Normalised(const device::half* x, int64_t channels, double epsilon) {
  std::vector<double> v;
  double mean = 0, m2 = 0;
  for (int64_t c = 0; c < channels; ++c) v.push_back(device::HalfBitsToFloat(x[c].bits));
  for (const double value : v) mean += value;
  mean /= static_cast<double>(channels);
  for (const double value : v) m2 += (value - mean) * (value - mean);
  const double rstd = 1 / std::sqrt(m2 / static_cast<double>(channels) + epsilon);
  for (double& value : v) value = (value - mean) * rstd;
  return v;
}

// weight [n, k] times `v` of k.
std::vector<double> Times(const device::half* weight, int64_t n, const std::vector<double>& v) {
  const auto k = static_cast<int64_t>(v.size());
  std::vector<double> sums(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t c = 0; c < k; ++c) {
      sums[static_cast<size_t>(j)] +=
          device::HalfBitsToFloat(weight[j * k + c].bits) * v[static_cast<size_t>(c)];
    }
  }
  return sums;
}

}  // namespace

Result<FeedForwardF16Kernels> FeedForwardF16Kernels::Load(const Host& host,
                                                          const DeviceModule& module,
                                                          const LinearF16Kernels& linear,
                                                          const RowStatsF16Kernels& row_stats) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  FeedForwardF16Kernels kernels;
  kernels.linear = linear;
  kernels.row_stats = row_stats;
  MK_TRY_ASSIGN(kernels.fused96,
                host.FindKernel<FeedForwardF16Params>(loaded, "mk_feed_forward_f16_96"));
  MK_TRY_ASSIGN(kernels.fused192,
                host.FindKernel<FeedForwardF16Params>(loaded, "mk_feed_forward_f16_192"));
  return kernels;
}

Status CheckFeedForwardF16(const FeedForwardF16Params& p) {
  MK_TRY(CheckPointer(kOp, "weight1", p.weight1));
  MK_TRY(CheckPointer(kOp, "sums1", p.sums1));
  MK_TRY(CheckPointer(kOp, "bias1", p.bias1));
  MK_TRY(CheckPointer(kOp, "weight2", p.weight2));
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckRange(kOp, "rows", p.rows, 1, kMaxRows));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxChannels));
  MK_TRY(CheckRange(kOp, "hidden", p.hidden, 1, kMaxChannels));
  MK_TRY(CheckElements(kOp, "x", p.rows, p.channels));
  MK_TRY(CheckElements(kOp, "the hidden layer", p.rows, p.hidden));
  MK_TRY(CheckActivation(kOp, p.activation));
  if (!(p.epsilon > 0) || !std::isfinite(p.epsilon)) {
    return InvalidArgument("FeedForwardF16: epsilon " + std::to_string(p.epsilon) +
                           " is not positive");
  }
  return Ok();
}

FeedForwardF16Form ChooseFeedForwardF16(const FeedForwardF16Params& p, mk_i32 sms) {
  for (const auto form : {FeedForwardF16Form::kFused96, FeedForwardF16Form::kFused192}) {
    const FusedShape& shape = ShapeOf(form);
    if (CanFuse(p, shape) && CeilDiv(p.rows, shape.rows) >= sms) return form;
  }
  return FeedForwardF16Form::kSeparate;
}

int64_t FeedForwardF16ScratchBytes(const FeedForwardF16Params& p, FeedForwardF16Form form) {
  if (form != FeedForwardF16Form::kSeparate) return 0;
  return 2 * p.rows * p.hidden + static_cast<int64_t>(sizeof(RowStats)) * p.rows;
}

LaunchCost FeedForwardF16Cost(const FeedForwardF16Params& p) {
  const int64_t weights =
      2 * (2 * p.channels * p.hidden) + 4 * p.hidden + (p.bias2 != nullptr ? 4 * p.channels : 0);
  const int64_t stats =
      p.x_stats != nullptr ? 8 * p.rows * CeilDiv(p.channels, int64_t{kStatsGroup}) : 0;
  EpilogueF16 hidden;
  hidden.activation = p.activation;
  const int64_t norm_and_sum = 8 * p.rows * p.channels;
  return {static_cast<uint64_t>(4 * p.rows * p.channels + weights + stats),
          static_cast<uint64_t>(norm_and_sum + EpilogueF16Flops(hidden, p.rows, p.hidden)),
          static_cast<uint64_t>(4 * p.rows * p.channels) * static_cast<uint64_t>(p.hidden)};
}

Status FeedForwardF16As(Context& context, const FeedForwardF16Kernels& kernels,
                        const FeedForwardF16Params& p, FeedForwardF16Form form) {
  MK_TRY(CheckFeedForwardF16(p));
  if (form == FeedForwardF16Form::kSeparate) return RunSeparate(context, kernels, p);
  const FusedShape& shape = ShapeOf(form);
  if (!CanFuse(p, shape)) {
    return InvalidArgument("FeedForwardF16: " + std::to_string(p.channels) + " channels and " +
                           std::to_string(p.hidden) + " hidden do not go into the kernel for " +
                           std::to_string(shape.channels));
  }
  const Dim3 grid = {static_cast<uint32_t>(CeilDiv(p.rows, shape.rows))};
  return context.Launch(form == FeedForwardF16Form::kFused96 ? kernels.fused96 : kernels.fused192,
                        grid, {kThreads}, shape.shared_bytes, p, FeedForwardF16Cost(p));
}

Status FeedForwardF16(Context& context, const FeedForwardF16Kernels& kernels,
                      const FeedForwardF16Params& p) {
  MK_TRY(CheckFeedForwardF16(p));
  if (context.device() == DeviceKind::kCpu) {
    FeedForwardF16Cpu(p);
    return Ok();
  }
  return FeedForwardF16As(context, kernels, p, ChooseFeedForwardF16(p, kernels.linear.sms));
}

void FeedForwardF16Cpu(const FeedForwardF16Params& p) {
  std::vector<device::half> hidden(static_cast<size_t>(p.hidden));
  for (int64_t i = 0; i < p.rows; ++i) {
    const std::vector<double> x = Normalised(p.x + i * p.channels, p.channels, p.epsilon);
    EpilogueF16 first;
    first.bias = p.bias1;
    first.y = hidden.data();
    first.activation = p.activation;
    FinishRowF16Cpu(first, 0, p.hidden, Times(p.weight1, p.hidden, x));
    std::vector<double> stored;
    for (const device::half h : hidden) stored.push_back(device::HalfBitsToFloat(h.bits));
    EpilogueF16 second;
    second.bias = p.bias2;
    second.residual = p.x;
    second.y = p.x;
    second.y_stats = p.x_stats;
    FinishRowF16Cpu(second, i, p.channels, Times(p.weight2, p.channels, stored));
  }
}

}  // namespace mk
