#include "kernels/roof/roof.h"

namespace mk {
namespace {

constexpr char kCopy[] = "RoofCopy";
constexpr char kMath[] = "RoofMath";
constexpr int64_t kCopyBytesPerBlock = 16 * 4 * kRoofThreads;
constexpr int64_t kMaxBytes = int64_t{1} << 38;
constexpr int64_t kMaxSteps = 1 << 20, kMaxBlocks = 1 << 20;

Status CheckMath(const RoofMathParams& p, int64_t blocks) {
  MK_TRY(CheckPointer(kMath, "y", p.y));
  MK_TRY(CheckRange(kMath, "steps", p.steps, 1, kMaxSteps));
  return CheckRange(kMath, "blocks", blocks, 1, kMaxBlocks);
}

Status Launch(Context& context, const Kernel<RoofMathParams>& kernel, const RoofMathParams& params,
              int64_t blocks, uint64_t flops, uint64_t tensor_flops) {
  return context.Launch(kernel, {static_cast<uint32_t>(blocks)}, {kRoofThreads}, 0, params,
                        {4ull * kRoofThreads * static_cast<uint64_t>(blocks), flops, tensor_flops});
}

}  // namespace

Result<RoofKernels> RoofKernels::Load(const Host& host, const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  RoofKernels k;
  MK_TRY_ASSIGN(k.copy, host.FindKernel<RoofCopyParams>(loaded, "mk_roof_copy"));
  MK_TRY_ASSIGN(k.tensor, host.FindKernel<RoofMathParams>(loaded, "mk_roof_tensor"));
  MK_TRY_ASSIGN(k.fp32, host.FindKernel<RoofMathParams>(loaded, "mk_roof_fp32"));
  return k;
}

Status RoofCopy(Context& context, const RoofKernels& kernels, const RoofCopyParams& p) {
  MK_TRY(CheckPointer(kCopy, "x", p.x));
  MK_TRY(CheckPointer(kCopy, "y", p.y));
  MK_TRY(CheckRange(kCopy, "bytes", p.bytes, 16, kMaxBytes));
  if (p.bytes % 16 != 0 || !IsAligned(p.x, 16) || !IsAligned(p.y, 16)) {
    return InvalidArgument("RoofCopy: x, y and bytes must be multiples of 16");
  }
  const auto blocks = static_cast<uint32_t>(CeilDiv(p.bytes, kCopyBytesPerBlock));
  return context.Launch(kernels.copy, {blocks}, {kRoofThreads}, 0, p,
                        {2 * static_cast<uint64_t>(p.bytes), 0, 0});
}

Status RoofTensor(Context& context, const RoofKernels& kernels, const RoofMathParams& p,
                  int64_t blocks) {
  MK_TRY(CheckMath(p, blocks));
  const auto warps = static_cast<uint64_t>(blocks) * (kRoofThreads / 32);
  return Launch(context, kernels.tensor, p, blocks, 0,
                warps * static_cast<uint64_t>(p.steps) * kRoofChains * 4096);
}

Status RoofFp32(Context& context, const RoofKernels& kernels, const RoofMathParams& p,
                int64_t blocks) {
  MK_TRY(CheckMath(p, blocks));
  const auto threads = static_cast<uint64_t>(blocks) * kRoofThreads;
  return Launch(context, kernels.fp32, p, blocks,
                threads * static_cast<uint64_t>(p.steps) * kRoofChains * 2, 0);
}

}  // namespace mk
