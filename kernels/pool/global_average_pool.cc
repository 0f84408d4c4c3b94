#include "kernels/pool/global_average_pool.h"

#include <algorithm>
#include <cstdint>

namespace mk {
namespace {

constexpr char kOp[] = "GlobalAveragePool";
constexpr int64_t kBlock = 64;  // channels whose sums are held at once
constexpr int64_t kGroup = 64;  // rows summed before they are added to the total

// Channels [first, first + count), count <= kBlock.
void PoolBlock(const GlobalAveragePoolParams& p, int64_t first, int64_t count) {
  float total[kBlock] = {};
  for (int64_t group = 0; group < p.rows; group += kGroup) {
    float sum[kBlock] = {};
    const int64_t end = std::min(group + kGroup, p.rows);
    for (int64_t row = group; row < end; ++row) {
      const float* x = p.x + row * p.channels + first;
      for (int64_t c = 0; c < count; ++c) sum[c] += x[c];
    }
    for (int64_t c = 0; c < count; ++c) total[c] += sum[c];
  }
  const float rows = static_cast<float>(p.rows);
  for (int64_t c = 0; c < count; ++c) p.y[first + c] = total[c] / rows;
}

}  // namespace

Status CheckGlobalAveragePool(const GlobalAveragePoolParams& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  MK_TRY(CheckRange(kOp, "rows", p.rows, 1, int64_t{1} << 24));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, int64_t{1} << 20));
  MK_TRY(CheckElements(kOp, "x", p.rows, p.channels));
  if (p.x == p.y) return InvalidArgument("GlobalAveragePool: y is x");
  return Ok();
}

OpCost GlobalAveragePoolCost(const GlobalAveragePoolParams& p) {
  return {(p.rows + 1) * p.channels * static_cast<int64_t>(sizeof(float)), p.rows * p.channels};
}

Status GlobalAveragePoolCpu(Context& context, const GlobalAveragePoolParams& p) {
  const int64_t blocks = CeilDiv(p.channels, kBlock);
  context.ParallelFor(blocks, GrainForSteps(p.rows * kBlock / 4), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      PoolBlock(p, i * kBlock, std::min(kBlock, p.channels - i * kBlock));
    }
  });
  return Ok();
}

Status GlobalAveragePool(Context& context, const GlobalAveragePoolParams& params) {
  MK_TRY(CheckGlobalAveragePool(params));
  if (context.device() == DeviceKind::kCpu) return GlobalAveragePoolCpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
