#include "kernels/conv/depthwise3x3.h"

#include <algorithm>
#include <cstdint>

#include "kernels/conv/depthwise3x3_simd.h"
#include "kernels/math/activation.h"

namespace mk {
namespace {

constexpr char kOp[] = "Depthwise3x3";
constexpr int64_t kMaxSide = int64_t{1} << 24;
constexpr int64_t kMaxChannels = int64_t{1} << 20;
constexpr int64_t kTaps = 9;

}  // namespace

void RelayDepthwise3x3Weight(const float* stored, int64_t channels, float* weight) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t tap = 0; tap < kTaps; ++tap) weight[tap * channels + c] = stored[c * kTaps + tap];
  }
}

Status CheckDepthwise3x3(const Depthwise3x3Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  MK_TRY(CheckRange(kOp, "height", p.height, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "width", p.width, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxChannels));
  MK_TRY(CheckElements(kOp, "x", p.height * p.width, p.channels));
  MK_TRY(CheckActivation(kOp, p.activation));
  if (p.x == p.y) return InvalidArgument("Depthwise3x3: y is x");
  return Ok();
}

OpCost Depthwise3x3Cost(const Depthwise3x3Params& p) {
  const int64_t elements = p.height * p.width * p.channels;
  return {(2 * elements + kTaps * p.channels) * static_cast<int64_t>(sizeof(float)),
          2 * kTaps * elements};
}

Status Depthwise3x3Cpu(Context& context, const Depthwise3x3Params& p, Isa isa) {
  const ScratchScope scope(context);
  MK_TRY_ASSIGN(float* const zeros, context.Scratch<float>(p.channels));
  std::fill_n(zeros, p.channels, 0.0f);
  const auto rows = MK_SIMD_PICK(isa, DepthwiseRows);
  context.ParallelFor(p.height, GrainForSteps(2 * p.width * p.channels),
                      [&](int64_t begin, int64_t end) { rows(p, zeros, begin, end); });
  return Ok();
}

Status Depthwise3x3(Context& context, const Depthwise3x3Params& params) {
  MK_TRY(CheckDepthwise3x3(params));
  if (context.device() == DeviceKind::kCpu) return Depthwise3x3Cpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
