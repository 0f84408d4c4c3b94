#include "kernels/linear/linear_f16.h"

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/convert.h"
#include "kernels/linear/epilogue_f16_host.h"

namespace mk {
namespace {

constexpr char kOp[] = "LinearF16";
constexpr int64_t kMaxSide = int64_t{1} << 30;
constexpr const char* kKernelNames[kTileCountF16] = {"mk_linear_f16_128x128",
                                                     "mk_linear_f16_128x64", "mk_linear_f16_64x128",
                                                     "mk_linear_f16_64x64", "mk_linear_f16_32x64"};
constexpr TileIndexF16 kTileOfAny = k64x64;

bool MovesBy16Bytes(const LinearF16Params& p) {
  return p.k % 8 == 0 && IsAligned(p.x, 16) && IsAligned(p.weight, 16);
}

Status Launch(Context& context, const Kernel<LinearF16Params>& kernel, TileIndexF16 index,
              const LinearF16Params& p) {
  const TileF16& tile = kTilesF16[index];
  const Dim3 grid = {static_cast<uint32_t>(TileBlocksF16(tile, p.m, p.n))};
  const Dim3 block = {static_cast<uint32_t>(TileThreadsF16(tile))};
  return context.Launch(kernel, grid, block, static_cast<uint32_t>(TileSharedBytesF16(tile)), p,
                        LinearF16Cost(p));
}

}  // namespace

Result<LinearF16Kernels> LinearF16Kernels::Load(const Host& host, const DeviceModule& module,
                                                mk_i32 sms) {
  MK_TRY(CheckRange(kOp, "sms", sms, 1, 1 << 16));
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  LinearF16Kernels kernels;
  kernels.sms = sms;
  for (int i = 0; i < kTileCountF16; ++i) {
    MK_TRY_ASSIGN(kernels.tiles[i], host.FindKernel<LinearF16Params>(loaded, kKernelNames[i]));
  }
  MK_TRY_ASSIGN(kernels.any, host.FindKernel<LinearF16Params>(loaded, "mk_linear_f16_any"));
  return kernels;
}

Status CheckLinearF16(const LinearF16Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckRange(kOp, "m", p.m, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "n", p.n, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "k", p.k, 1, kMaxSide));
  MK_TRY(CheckElements(kOp, "x", p.m, p.k));
  MK_TRY(CheckElements(kOp, "weight", p.n, p.k));
  MK_TRY(CheckEpilogueF16(kOp, p.epilogue, p.m, p.n));
  if (p.epilogue.norm_stats != nullptr && p.epilogue.norm_columns != p.k) {
    return InvalidArgument("LinearF16: norm_columns " + std::to_string(p.epilogue.norm_columns) +
                           " is not k " + std::to_string(p.k));
  }
  if (p.x == p.epilogue.y) return InvalidArgument("LinearF16: y is x");
  return Ok();
}

LaunchCost LinearF16Cost(const LinearF16Params& p) {
  const int64_t bytes = 2 * (p.m * p.k + p.n * p.k) + EpilogueF16Bytes(p.epilogue, p.m, p.n);
  return {static_cast<uint64_t>(bytes),
          static_cast<uint64_t>(EpilogueF16Flops(p.epilogue, p.m, p.n)),
          static_cast<uint64_t>(2 * p.m * p.n) * static_cast<uint64_t>(p.k)};
}

Status LinearF16WithTile(Context& context, const LinearF16Kernels& kernels,
                         const LinearF16Params& p, TileIndexF16 tile) {
  MK_TRY(CheckLinearF16(p));
  if (!MovesBy16Bytes(p)) return InvalidArgument("LinearF16: operands do not move by 16 bytes");
  return Launch(context, kernels.tiles[tile], tile, p);
}

Status LinearF16(Context& context, const LinearF16Kernels& kernels, const LinearF16Params& p) {
  MK_TRY(CheckLinearF16(p));
  if (context.device() == DeviceKind::kCpu) {
    LinearF16Cpu(p);
    return Ok();
  }
  if (!MovesBy16Bytes(p)) return Launch(context, kernels.any, kTileOfAny, p);
  const TileIndexF16 tile = ChooseTileF16(p.m, p.n, kernels.sms);
  return Launch(context, kernels.tiles[tile], tile, p);
}

void LinearF16Cpu(const LinearF16Params& p) {
  std::vector<double> sums(static_cast<size_t>(p.n));
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        sum += static_cast<double>(device::HalfBitsToFloat(p.x[i * p.k + l].bits)) *
               device::HalfBitsToFloat(p.weight[j * p.k + l].bits);
      }
      sums[static_cast<size_t>(j)] = sum;
    }
    FinishRowF16Cpu(p.epilogue, i, p.n, sums);
  }
}

}  // namespace mk
