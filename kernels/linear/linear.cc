#include "kernels/linear/linear.h"

#include <cstdint>
#include <string>

#include "kernels/linear/product.h"
#include "kernels/math/activation.h"

namespace mk {
namespace {

constexpr char kOp[] = "Linear";

}  // namespace

Status CheckLinear(const LinearParams& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  MK_TRY(CheckRange(kOp, "m", p.m, 1, INT32_MAX));
  MK_TRY(CheckRange(kOp, "n", p.n, 1, INT32_MAX));
  MK_TRY(CheckRange(kOp, "k", p.k, 1, INT32_MAX));
  MK_TRY(CheckElements(kOp, "x", p.m, p.k));
  MK_TRY(CheckElements(kOp, "weight", p.n, p.k));
  MK_TRY(CheckElements(kOp, "y", p.m, p.n));
  MK_TRY(CheckActivation(kOp, p.activation));
  if (p.x == p.y) return InvalidArgument("Linear: y is x");
  if (p.residual == p.y && p.activation != Activation::kNone) {
    return InvalidArgument(std::string("Linear: residual is y, with activation ") +
                           ActivationName(p.activation));
  }
  return Ok();
}

OpCost LinearCost(const LinearParams& p) {
  const int64_t out = p.m * p.n;
  const int64_t elements = p.m * p.k + p.n * p.k + out + (p.bias != nullptr ? p.n : 0) +
                           (p.residual != nullptr ? out : 0);
  return {elements * static_cast<int64_t>(sizeof(float)), 2 * out * p.k};
}

Status LinearCpu(Context& context, const LinearParams& p, Isa isa) {
  const Status status = RunProduct(
      context,
      {p.x, p.weight, /*b_transposed=*/true, p.bias, p.residual, p.y, p.m, p.n, p.k, p.activation},
      isa);
  if (status.ok()) return status;
  return {status.code(), "Linear: sgemm failed for m " + std::to_string(p.m) + " n " +
                             std::to_string(p.n) + " k " + std::to_string(p.k)};
}

Status Linear(Context& context, const LinearParams& params) {
  MK_TRY(CheckLinear(params));
  if (context.device() == DeviceKind::kCpu) return LinearCpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
