#include "kernels/pointwise/softmax_f16.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "kernels/device/convert.h"

namespace mk {
namespace {

using device::half;

constexpr char kOp[] = "SoftmaxF16";
constexpr uint32_t kThreads = 256;
constexpr int64_t kRowsPerBlock = kThreads / 32;
constexpr int64_t kMaxRows = (int64_t{1} << 31) - 1;  // a grid's x
constexpr int64_t kMaxColumns = int64_t{1} << 20;

const Kernel<SoftmaxF16Params>& Choose(const SoftmaxF16Kernels& k, const SoftmaxF16Params& p) {
  if (p.columns % 8 != 0 || !IsAligned(p.x, 16) || !IsAligned(p.y, 16)) return k.any;
  return p.columns <= 256 ? k.chunk : p.columns <= 1024 ? k.chunks4 : k.wide;
}

}  // namespace

Result<SoftmaxF16Kernels> SoftmaxF16Kernels::Load(const Host& host, const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  SoftmaxF16Kernels k;
  const auto find = [&](const char* name) {
    return host.FindKernel<SoftmaxF16Params>(loaded, name);
  };
  MK_TRY_ASSIGN(k.chunk, find("mk_softmax_f16_chunk"));
  MK_TRY_ASSIGN(k.chunks4, find("mk_softmax_f16_chunks4"));
  MK_TRY_ASSIGN(k.wide, find("mk_softmax_f16_wide"));
  MK_TRY_ASSIGN(k.any, find("mk_softmax_f16_any"));
  return k;
}

Status CheckSoftmaxF16(const SoftmaxF16Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  MK_TRY(CheckRange(kOp, "rows", p.rows, 1, kMaxRows));
  MK_TRY(CheckRange(kOp, "columns", p.columns, 1, kMaxColumns));
  MK_TRY(CheckElements(kOp, "x", p.rows, p.columns));
  if (std::isfinite(p.scale)) return Ok();
  return InvalidArgument(std::string(kOp) + ": scale " + std::to_string(p.scale) +
                         " is not finite");
}

LaunchCost SoftmaxF16Cost(const SoftmaxF16Params& p) {
  const auto elements = static_cast<uint64_t>(p.rows * p.columns);
  return {2 * elements * sizeof(half), 5 * elements, 0};
}

Status SoftmaxF16(Context& context, const SoftmaxF16Kernels& kernels,
                  const SoftmaxF16Params& params) {
  MK_TRY(CheckSoftmaxF16(params));
  const auto blocks = static_cast<uint32_t>(CeilDiv(params.rows, kRowsPerBlock));
  return context.Launch(Choose(kernels, params), {blocks}, {kThreads}, 0, params,
                        SoftmaxF16Cost(params));
}

void SoftmaxF16Cpu(const SoftmaxF16Params& p) {
  for (int64_t i = 0; i < p.rows; ++i) {
    const auto at = [&](int64_t c) {
      return double(p.scale) * device::HalfBitsToFloat(p.x[i * p.columns + c].bits);
    };
    double most = -INFINITY;
    double sum = 0;
    for (int64_t c = 0; c < p.columns; ++c) most = std::max(most, at(c));
    for (int64_t c = 0; c < p.columns; ++c) sum += std::exp(at(c) - most);
    for (int64_t c = 0; c < p.columns; ++c) {
      p.y[i * p.columns + c].bits =
          device::FloatToHalfBits(static_cast<float>(std::exp(at(c) - most) / sum));
    }
  }
}

}  // namespace mk
