#include "kernels/conv/patch_embed_f16.h"

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/convert.h"
#include "kernels/linear/epilogue_f16_host.h"
#include "kernels/linear/tiles_f16.h"

namespace mk {
namespace {

constexpr char kOp[] = "PatchEmbedF16";
constexpr int64_t kMaxSide = int64_t{1} << 24;
constexpr int64_t kMaxPatches = int64_t{1} << 30;
constexpr TileF16 kTile = kTilesF16[k64x64];

int64_t Patches(const PatchEmbedF16Params& p) { return p.height / p.patch * (p.width / p.patch); }

Status CheckMultiple(const char* name, int64_t value, int64_t of) {
  if (value % of == 0) return Ok();
  return InvalidArgument("PatchEmbedF16: " + std::string(name) + " " + std::to_string(value) +
                         " is not a multiple of patch " + std::to_string(of));
}

}  // namespace

Result<PatchEmbedF16Kernels> PatchEmbedF16Kernels::Load(const Host& host,
                                                        const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  PatchEmbedF16Kernels kernels;
  MK_TRY_ASSIGN(kernels.chunks,
                host.FindKernel<PatchEmbedF16Params>(loaded, "mk_patch_embed_f16_64x64"));
  MK_TRY_ASSIGN(kernels.any,
                host.FindKernel<PatchEmbedF16Params>(loaded, "mk_patch_embed_f16_any"));
  return kernels;
}

Status CheckPatchEmbedF16(const PatchEmbedF16Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckRange(kOp, "height", p.height, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "width", p.width, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "in_channels", p.in_channels, 1, 64));
  MK_TRY(CheckRange(kOp, "out_channels", p.out_channels, 1, int64_t{1} << 20));
  MK_TRY(CheckRange(kOp, "patch", p.patch, 1, 64));
  MK_TRY(CheckMultiple("height", p.height, p.patch));
  MK_TRY(CheckMultiple("width", p.width, p.patch));
  MK_TRY(CheckElements(kOp, "x", p.height * p.width, p.in_channels));
  MK_TRY(CheckRange(kOp, "patches", Patches(p), 1, kMaxPatches));
  MK_TRY(CheckEpilogueF16(kOp, p.epilogue, Patches(p), p.out_channels));
  if (p.epilogue.norm_stats != nullptr) {
    return InvalidArgument("PatchEmbedF16: a norm before patches is not folded");
  }
  if (p.x == p.epilogue.y) return InvalidArgument("PatchEmbedF16: y is x");
  return Ok();
}

LaunchCost PatchEmbedF16Cost(const PatchEmbedF16Params& p) {
  const int64_t k = p.patch * p.patch * p.in_channels;
  const int64_t bytes = 2 * (p.height * p.width * p.in_channels + k * p.out_channels) +
                        EpilogueF16Bytes(p.epilogue, Patches(p), p.out_channels);
  return {static_cast<uint64_t>(bytes),
          static_cast<uint64_t>(EpilogueF16Flops(p.epilogue, Patches(p), p.out_channels)),
          static_cast<uint64_t>(2 * k) * static_cast<uint64_t>(Patches(p) * p.out_channels)};
}

Status PatchEmbedF16(Context& context, const PatchEmbedF16Kernels& kernels,
                     const PatchEmbedF16Params& p) {
  MK_TRY(CheckPatchEmbedF16(p));
  if (context.device() == DeviceKind::kCpu) {
    PatchEmbedF16Cpu(p);
    return Ok();
  }
  const bool chunks =
      p.patch * p.in_channels % 8 == 0 && IsAligned(p.x, 16) && IsAligned(p.weight, 16);
  const Dim3 grid = {static_cast<uint32_t>(TileBlocksF16(kTile, Patches(p), p.out_channels))};
  const Dim3 block = {static_cast<uint32_t>(TileThreadsF16(kTile))};
  return context.Launch(chunks ? kernels.chunks : kernels.any, grid, block,
                        static_cast<uint32_t>(TileSharedBytesF16(kTile)), p, PatchEmbedF16Cost(p));
}

void PatchEmbedF16Cpu(const PatchEmbedF16Params& p) {
  const int64_t side = p.patch, row_values = side * p.in_channels;
  const int64_t columns = p.width / side;
  std::vector<double> sums(static_cast<size_t>(p.out_channels));
  for (int64_t at = 0; at < Patches(p); ++at) {
    for (int64_t o = 0; o < p.out_channels; ++o) {
      double sum = 0;
      for (int64_t u = 0; u < side; ++u) {
        const device::half* seen =
            p.x + (at / columns * side + u) * p.width * p.in_channels + at % columns * row_values;
        const device::half* weight = p.weight + (o * side + u) * row_values;
        for (int64_t c = 0; c < row_values; ++c) {
          sum += static_cast<double>(device::HalfBitsToFloat(seen[c].bits)) *
                 device::HalfBitsToFloat(weight[c].bits);
        }
      }
      sums[static_cast<size_t>(o)] = sum;
    }
    FinishRowF16Cpu(p.epilogue, at, p.out_channels, sums);
  }
}

}  // namespace mk
