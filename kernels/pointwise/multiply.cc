#include "kernels/pointwise/multiply.h"

#include <cstdint>

#include "kernels/pointwise/multiply_simd.h"

namespace mk {
namespace {

constexpr char kOp[] = "Multiply";

}  // namespace

Status CheckMultiply(const MultiplyParams& p) {
  MK_TRY(CheckPointer(kOp, "a", p.a));
  MK_TRY(CheckPointer(kOp, "b", p.b));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  return CheckRange(kOp, "count", p.count, 1, kMaxElements);
}

OpCost MultiplyCost(const MultiplyParams& p) {
  return {3 * p.count * static_cast<int64_t>(sizeof(float)), p.count};
}

Status MultiplyCpu(Context& context, const MultiplyParams& p, Isa isa) {
  const auto multiply = MK_SIMD_PICK(isa, MultiplyRange);
  context.ParallelFor(p.count, GrainForSteps(1),
                      [&](int64_t begin, int64_t end) { multiply(p, begin, end); });
  return Ok();
}

Status Multiply(Context& context, const MultiplyParams& params) {
  MK_TRY(CheckMultiply(params));
  if (context.device() == DeviceKind::kCpu) return MultiplyCpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
