#include "kernels/pointwise/multiply_f16.h"

#include <cstdint>

#include "kernels/device/convert.h"

namespace mk {
namespace {

using device::half;

constexpr char kOp[] = "MultiplyF16";
constexpr uint32_t kThreads = 256;
constexpr int64_t kMaxCount = int64_t{1} << 38;  // of blocks of 256: 2^30

bool TakesVectors(const MultiplyF16Params& p) {
  return IsAligned(p.a, 16) && IsAligned(p.b, 16) && IsAligned(p.y, 16);
}

}  // namespace

Result<MultiplyF16Kernels> MultiplyF16Kernels::Load(const Host& host, const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  MultiplyF16Kernels k;
  MK_TRY_ASSIGN(k.vectors, host.FindKernel<MultiplyF16Params>(loaded, "mk_multiply_f16_vectors"));
  MK_TRY_ASSIGN(k.any, host.FindKernel<MultiplyF16Params>(loaded, "mk_multiply_f16_any"));
  return k;
}

Status CheckMultiplyF16(const MultiplyF16Params& p) {
  MK_TRY(CheckPointer(kOp, "a", p.a));
  MK_TRY(CheckPointer(kOp, "b", p.b));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  return CheckRange(kOp, "count", p.count, 1, kMaxCount);
}

LaunchCost MultiplyF16Cost(const MultiplyF16Params& p) {
  const auto count = static_cast<uint64_t>(p.count);
  return {3 * count * sizeof(half), count, 0};
}

Status MultiplyF16(Context& context, const MultiplyF16Kernels& kernels,
                   const MultiplyF16Params& params) {
  MK_TRY(CheckMultiplyF16(params));
  const bool vectors = TakesVectors(params);
  const int64_t threads = vectors ? CeilDiv(params.count, 8) : params.count;
  const auto blocks = static_cast<uint32_t>(CeilDiv(threads, kThreads));
  return context.Launch(vectors ? kernels.vectors : kernels.any, {blocks}, {kThreads}, 0, params,
                        MultiplyF16Cost(params));
}

void MultiplyF16Cpu(const MultiplyF16Params& p) {
  for (int64_t i = 0; i < p.count; ++i) {
    p.y[i].bits = device::FloatToHalfBits(device::HalfBitsToFloat(p.a[i].bits) *
                                          device::HalfBitsToFloat(p.b[i].bits));
  }
}

}  // namespace mk
