#include "kernels/norm/layer_norm.h"

#include <cstdint>

#include "kernels/math/activation.h"
#include "kernels/norm/layer_norm_simd.h"

namespace mk {
namespace {

constexpr char kOp[] = "LayerNorm";
constexpr int64_t kMaxChannels = int64_t{1} << 24;

}  // namespace

Status CheckLayerNorm(const LayerNormParams& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckPointer(kOp, "bias", p.bias));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  MK_TRY(CheckRange(kOp, "rows", p.rows, 1, kMaxElements));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxChannels));
  MK_TRY(CheckElements(kOp, "x", p.rows, p.channels));
  MK_TRY(CheckEpsilon(kOp, p.epsilon));
  MK_TRY(CheckActivation(kOp, p.activation));
  return Ok();
}

OpCost LayerNormCost(const LayerNormParams& p) {
  const int64_t elements = p.rows * p.channels;
  return {(2 * elements + 2 * p.channels) * static_cast<int64_t>(sizeof(float)), 8 * elements};
}

Status LayerNormCpu(Context& context, const LayerNormParams& p, Isa isa) {
  const auto rows = MK_SIMD_PICK(isa, NormRows);
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
