#include "kernels/scan/cross_scan.h"

#include <algorithm>
#include <cstdint>

#include "kernels/math/exp.h"

namespace mk {
namespace {

constexpr char kOp[] = "CrossScan";
constexpr int64_t kDirections = 4;
// Channels that one walk over the map carries: their state, step and output stay in L1, and a row
// of them is four cache lines. Narrower where that gives every thread a block.
constexpr int64_t kMaxBlock = 64;
constexpr int64_t kMinBlock = 16;

// The tokens of a map along one direction, one after the other.
class Walk {
 public:
  Walk(int64_t direction, int64_t height, int64_t width)
      : backwards_(direction >= 2),
        by_column_(direction % 2 == 1),
        width_(width),
        tokens_(height * width),
        token_(backwards_ ? tokens_ - 1 : 0) {}

  int64_t token() const { return token_; }

  void Advance() {
    if (!by_column_) {
      token_ += backwards_ ? -1 : 1;
    } else if (!backwards_) {
      token_ += width_;
      if (token_ >= tokens_) token_ -= tokens_ - 1;  // from the foot of a column to the next one
    } else {
      token_ -= width_;
      if (token_ < 0) token_ += tokens_ - 1;
    }
  }

 private:
  const bool backwards_;
  const bool by_column_;
  const int64_t width_;
  const int64_t tokens_;
  int64_t token_;
};

// step[c] = softplus(bias[c] + sum_r r[r] weight[r, c]) for `count` channels, rows `stride` apart.
void ComputeStep(const float* r, int64_t rank, const float* weight, const float* bias,
                 int64_t stride, int64_t count, float* step) {
  for (int64_t c = 0; c < count; ++c) step[c] = bias[c];
  for (int64_t i = 0; i < rank; ++i) {
    const float value = r[i];
    const float* row = weight + i * stride;
    for (int64_t c = 0; c < count; ++c) step[c] += value * row[c];
  }
  for (int64_t c = 0; c < count; ++c) step[c] = Softplus(step[c]);
}

// Direction k over channels [first, first + count), adding to y (or, for the first direction,
// starting it with the skip d x). `h` is [state, count].
void ScanDirection(const CrossScanParams& p, int64_t k, int64_t first, int64_t count, float* h) {
  const int64_t fields = p.rank + 2 * p.state;
  const float* weight = p.dt_weight + k * p.rank * p.channels + first;
  const float* bias = p.dt_bias + k * p.channels + first;
  const float* a = p.a + k * p.state * p.channels + first;
  const float* d = p.d + first;
  float step[kMaxBlock];
  float drive[kMaxBlock];
  float sum[kMaxBlock];
  std::fill_n(h, p.state * count, 0.0f);
  Walk walk(k, p.height, p.width);
  for (int64_t t = 0; t < p.height * p.width; ++t, walk.Advance()) {
    const float* x = p.x + walk.token() * p.channels + first;
    float* y = p.y + walk.token() * p.channels + first;
    const float* fields_t = p.projected + (walk.token() * kDirections + k) * fields;
    const float* b = fields_t + p.rank;
    const float* c_out = b + p.state;
    ComputeStep(fields_t, p.rank, weight, bias, p.channels, count, step);
    if (k == 0) {
      for (int64_t c = 0; c < count; ++c) sum[c] = d[c] * x[c];
    } else {
      for (int64_t c = 0; c < count; ++c) sum[c] = y[c];
    }
    for (int64_t c = 0; c < count; ++c) drive[c] = step[c] * x[c];
    for (int64_t n = 0; n < p.state; ++n) {
      const float* a_n = a + n * p.channels;
      float* h_n = h + n * count;
      const float b_n = b[n];
      const float c_n = c_out[n];
      for (int64_t c = 0; c < count; ++c) {
        const float next = Exp(step[c] * a_n[c]) * h_n[c] + drive[c] * b_n;
        h_n[c] = next;
        sum[c] += c_n * next;
      }
    }
    for (int64_t c = 0; c < count; ++c) y[c] = sum[c];
  }
}

}  // namespace

Status CheckCrossScan(const CrossScanParams& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "projected", p.projected));
  MK_TRY(CheckPointer(kOp, "dt_weight", p.dt_weight));
  MK_TRY(CheckPointer(kOp, "dt_bias", p.dt_bias));
  MK_TRY(CheckPointer(kOp, "a", p.a));
  MK_TRY(CheckPointer(kOp, "d", p.d));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  MK_TRY(CheckRange(kOp, "height", p.height, 1, int64_t{1} << 24));
  MK_TRY(CheckRange(kOp, "width", p.width, 1, int64_t{1} << 24));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, int64_t{1} << 20));
  MK_TRY(CheckRange(kOp, "rank", p.rank, 1, int64_t{1} << 16));
  MK_TRY(CheckRange(kOp, "state", p.state, 1, 256));
  MK_TRY(CheckElements(kOp, "x", p.height * p.width, p.channels));
  MK_TRY(CheckElements(kOp, "projected", p.height * p.width, kDirections * (p.rank + 2 * p.state)));
  if (p.x == p.y) return InvalidArgument("CrossScan: y is x");
  return Ok();
}

OpCost CrossScanCost(const CrossScanParams& p) {
  const int64_t tokens = p.height * p.width;
  const int64_t fields = p.rank + 2 * p.state;
  const int64_t elements = tokens * (2 * p.channels + kDirections * fields) +
                           p.channels * (kDirections * (p.rank + 1 + p.state) + 1);
  return {elements * static_cast<int64_t>(sizeof(float)),
          kDirections * tokens * p.channels * (2 * p.rank + 5 * p.state + 9)};
}

Status CrossScanCpu(Context& context, const CrossScanParams& p) {
  const int64_t share = CeilDiv(CeilDiv(p.channels, context.host().threads()), kMinBlock);
  const int64_t block = std::min(kMaxBlock, share * kMinBlock);
  const int64_t blocks = CeilDiv(p.channels, block);
  const ScratchScope scope(context);
  MK_TRY_ASSIGN(float* const state, context.Scratch<float>(blocks * block * p.state));
  const int64_t steps_per_block =
      kDirections * p.height * p.width * block * (p.rank + 8 * (p.state + 1)) / 8;
  context.ParallelFor(blocks, GrainForSteps(steps_per_block), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * block;
      const int64_t count = std::min(block, p.channels - first);
      for (int64_t k = 0; k < kDirections; ++k) {
        ScanDirection(p, k, first, count, state + first * p.state);
      }
    }
  });
  return Ok();
}

Status CrossScan(Context& context, const CrossScanParams& params) {
  MK_TRY(CheckCrossScan(params));
  if (context.device() == DeviceKind::kCpu) return CrossScanCpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
