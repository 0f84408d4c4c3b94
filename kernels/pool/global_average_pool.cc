#include "kernels/pool/global_average_pool.h"

#include <algorithm>
#include <cstdint>

#include "kernels/pool/global_average_pool_simd.h"

namespace mk {
namespace {

constexpr char kOp[] = "GlobalAveragePool";
constexpr int64_t kBlock = 64;  // channels of a range

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

Status GlobalAveragePoolCpu(Context& context, const GlobalAveragePoolParams& p, Isa isa) {
  const auto pool = MK_SIMD_PICK(isa, PoolChannels);
  const int64_t blocks = CeilDiv(p.channels, kBlock);
  context.ParallelFor(blocks, GrainForSteps(p.rows * kBlock / 4), [&](int64_t begin, int64_t end) {
    pool(p, begin * kBlock, std::min(end * kBlock, p.channels));
  });
  return Ok();
}

Status GlobalAveragePool(Context& context, const GlobalAveragePoolParams& params) {
  MK_TRY(CheckGlobalAveragePool(params));
  if (context.device() == DeviceKind::kCpu) return GlobalAveragePoolCpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
