#include "kernels/conv/depthwise3x3.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/math/activation.h"
#include "kernels/math/vectorize.h"

namespace mk {
namespace {

constexpr char kOp[] = "Depthwise3x3";
constexpr int64_t kMaxSide = int64_t{1} << 24;
constexpr int64_t kMaxChannels = int64_t{1} << 20;
constexpr int64_t kTaps = 9;

// One output position: the nine inputs under the kernel, each a row of channels.
template <Activation kActivation>
void Combine(const float* const in[kTaps], const float* weight, int64_t channels, float* y) {
  const float *i0 = in[0], *i1 = in[1], *i2 = in[2], *i3 = in[3], *i4 = in[4], *i5 = in[5],
              *i6 = in[6], *i7 = in[7], *i8 = in[8];
  const int64_t n = channels;
  MK_INDEPENDENT_ITERATIONS
  for (int64_t c = 0; c < n; ++c) {
    float sum = i0[c] * weight[c];
    sum += i1[c] * weight[c + n];
    sum += i2[c] * weight[c + 2 * n];
    sum += i3[c] * weight[c + 3 * n];
    sum += i4[c] * weight[c + 4 * n];
    sum += i5[c] * weight[c + 5 * n];
    sum += i6[c] * weight[c + 6 * n];
    sum += i7[c] * weight[c + 7 * n];
    sum += i8[c] * weight[c + 8 * n];
    y[c] = Activate<kActivation>(sum);
  }
}

// Output rows [begin, end). `zeros` stands in for what lies outside the map.
template <Activation kActivation>
void RunRows(const Depthwise3x3Params& p, const float* zeros, int64_t begin, int64_t end) {
  const float* in[kTaps];
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < p.width; ++j) {
      for (int64_t u = 0; u < 3; ++u) {
        for (int64_t v = 0; v < 3; ++v) {
          const int64_t row = i + u - 1;
          const int64_t column = j + v - 1;
          const bool inside = row >= 0 && row < p.height && column >= 0 && column < p.width;
          in[u * 3 + v] = inside ? p.x + (row * p.width + column) * p.channels : zeros;
        }
      }
      Combine<kActivation>(in, p.weight, p.channels, p.y + (i * p.width + j) * p.channels);
    }
  }
}

using RowsFunction = void (*)(const Depthwise3x3Params&, const float*, int64_t, int64_t);

RowsFunction RowsFunctionFor(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return &RunRows<Activation::kNone>;
    case Activation::kRelu:
      return &RunRows<Activation::kRelu>;
    case Activation::kGelu:
      return &RunRows<Activation::kGelu>;
    case Activation::kSilu:
      return &RunRows<Activation::kSilu>;
  }
  return nullptr;  // CheckDepthwise3x3 has refused it
}

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
  if (!IsActivation(p.activation)) {
    return InvalidArgument("Depthwise3x3: activation " +
                           std::to_string(static_cast<mk_u32>(p.activation)) + " is unknown");
  }
  if (p.x == p.y) return InvalidArgument("Depthwise3x3: y is x");
  return Ok();
}

OpCost Depthwise3x3Cost(const Depthwise3x3Params& p) {
  const int64_t elements = p.height * p.width * p.channels;
  return {(2 * elements + kTaps * p.channels) * static_cast<int64_t>(sizeof(float)),
          2 * kTaps * elements};
}

Status Depthwise3x3Cpu(Context& context, const Depthwise3x3Params& p) {
  const ScratchScope scope(context);
  MK_TRY_ASSIGN(float* const zeros, context.Scratch<float>(p.channels));
  std::fill_n(zeros, p.channels, 0.0f);
  const RowsFunction rows = RowsFunctionFor(p.activation);
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
