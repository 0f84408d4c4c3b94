#include "kernels/norm/layer_norm.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "kernels/math/activation.h"
#include "kernels/math/vectorize.h"

namespace mk {
namespace {

constexpr char kOp[] = "LayerNorm";
constexpr int64_t kMaxChannels = int64_t{1} << 24;
constexpr int kLanes =
    8;  // partial sums: fixed, so that results do not depend on the instruction set

// sum_c (x[c] - shift)^kPower, in kLanes partial sums.
template <int kPower>
float SumOfPowers(const float* x, int64_t channels, float shift) {
  const auto term = [shift](float v) {
    const float d = v - shift;
    return kPower == 1 ? d : d * d;
  };
  float lanes[kLanes] = {};
  const int64_t whole = channels / kLanes * kLanes;
  for (int64_t c = 0; c < whole; c += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += term(x[c + lane]);
  }
  for (int64_t c = whole; c < channels; ++c) lanes[c - whole] += term(x[c]);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <Activation kActivation>
void NormRows(const LayerNormParams& p, int64_t begin, int64_t end) {
  const int64_t channels = p.channels;
  const float count = static_cast<float>(channels);
  const float* weight = p.weight;
  const float* bias = p.bias;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * channels;
    float* y = p.y + row * channels;
    const float mean = SumOfPowers<1>(x, channels, 0.0f) / count;
    const float variance = SumOfPowers<2>(x, channels, mean) / count;
    const float scale = 1.0f / std::sqrt(variance + p.epsilon);
    MK_INDEPENDENT_ITERATIONS  // y may be x
        for (int64_t c = 0; c < channels; ++c) {
      y[c] = Activate<kActivation>((x[c] - mean) * scale * weight[c] + bias[c]);
    }
  }
}

using RowsFunction = void (*)(const LayerNormParams&, int64_t, int64_t);

RowsFunction RowsFunctionFor(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return &NormRows<Activation::kNone>;
    case Activation::kRelu:
      return &NormRows<Activation::kRelu>;
    case Activation::kGelu:
      return &NormRows<Activation::kGelu>;
    case Activation::kSilu:
      return &NormRows<Activation::kSilu>;
  }
  return nullptr;  // CheckLayerNorm has refused it
}

}  // namespace

Status CheckLayerNorm(const LayerNormParams& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckPointer(kOp, "bias", p.bias));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  MK_TRY(CheckRange(kOp, "rows", p.rows, 1, kMaxElements));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxChannels));
  MK_TRY(CheckElements(kOp, "x", p.rows, p.channels));
  if (!(p.epsilon >= 0.0f) || std::isinf(p.epsilon)) {
    return InvalidArgument("LayerNorm: epsilon " + std::to_string(p.epsilon) +
                           " is not finite and >= 0");
  }
  if (!IsActivation(p.activation)) {
    return InvalidArgument("LayerNorm: activation " +
                           std::to_string(static_cast<mk_u32>(p.activation)) + " is unknown");
  }
  return Ok();
}

OpCost LayerNormCost(const LayerNormParams& p) {
  const int64_t elements = p.rows * p.channels;
  return {(2 * elements + 2 * p.channels) * static_cast<int64_t>(sizeof(float)), 8 * elements};
}

Status LayerNormCpu(Context& context, const LayerNormParams& p) {
  const RowsFunction rows = RowsFunctionFor(p.activation);
  const int64_t steps = p.activation == Activation::kNone ? p.channels : 4 * p.channels;
  context.ParallelFor(p.rows, GrainForSteps(steps),
                      [&](int64_t begin, int64_t end) { rows(p, begin, end); });
  return Ok();
}

Status LayerNorm(Context& context, const LayerNormParams& params) {
  MK_TRY(CheckLayerNorm(params));
  if (context.device() == DeviceKind::kCpu) return LayerNormCpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
