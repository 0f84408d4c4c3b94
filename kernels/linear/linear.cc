#include "kernels/linear/linear.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/linear/epilogue.h"
#include "kernels/math/activation.h"

namespace mk {
namespace {

constexpr char kOp[] = "Linear";
// Rows of a panel: its outputs fill at most half of a 512 KiB L2, and it is tall enough that the
// library's packing of the weight is spread over many rows.
constexpr int64_t kPanelBytes = 256 << 10;
constexpr int64_t kMinPanelRows = 64;

// Rows [begin, begin + rows): product, then epilogue.
Status RunPanel(Context& context, const LinearParams& p, Isa isa, int64_t begin, int64_t rows) {
  float* y = p.y + begin * p.n;
  const float* residual = p.residual != nullptr ? p.residual + begin * p.n : nullptr;
  mk_sgemm_args gemm = {};
  gemm.transpose_b = 1;
  gemm.m = rows;
  gemm.n = p.n;
  gemm.k = p.k;
  gemm.alpha = 1.0f;
  gemm.a = p.x + begin * p.k;
  gemm.lda = p.k;
  gemm.b = p.weight;
  gemm.ldb = p.k;
  gemm.c = y;
  gemm.ldc = p.n;
  if (residual != nullptr && p.activation == Activation::kNone) {
    // Without an activation between them the sum may start from the residual: one pass less, and
    // the layer may run in place.
    if (residual != y) std::memcpy(y, residual, static_cast<size_t>(rows * p.n) * sizeof(float));
    gemm.beta = 1.0f;
    residual = nullptr;
  }
  MK_TRY(context.Sgemm(gemm));
  MK_SIMD_PICK(isa, Epilogue)({y, p.bias, residual, rows, p.n, p.activation});
  return Ok();
}

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
  if (!IsActivation(p.activation)) {
    return InvalidArgument("Linear: activation " +
                           std::to_string(static_cast<mk_u32>(p.activation)) + " is unknown");
  }
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
  const int64_t row_bytes = p.n * static_cast<int64_t>(sizeof(float));
  const int64_t panel_rows = std::max(kMinPanelRows, kPanelBytes / row_bytes);
  const int64_t grain = CeilDiv(kMinRangeMacs, p.n * p.k);
  std::atomic<mk_status> failure{MK_OK};
  context.ParallelFor(p.m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += panel_rows) {
      const Status status = RunPanel(context, p, isa, row, std::min(panel_rows, end - row));
      // Relaxed: ParallelFor's return publishes it.
      if (!status.ok()) failure.store(status.code(), std::memory_order_relaxed);
    }
  });
  const mk_status code = failure.load(std::memory_order_relaxed);
  if (code == MK_OK) return Ok();
  return {code, "Linear: sgemm failed for m " + std::to_string(p.m) + " n " + std::to_string(p.n) +
                    " k " + std::to_string(p.k)};
}

Status Linear(Context& context, const LinearParams& params) {
  MK_TRY(CheckLinear(params));
  if (context.device() == DeviceKind::kCpu) return LinearCpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
