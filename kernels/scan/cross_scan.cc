#include "kernels/scan/cross_scan.h"

#include <algorithm>
#include <cstdint>

#include "kernels/scan/cross_scan_simd.h"

namespace mk {
namespace {

constexpr char kOp[] = "CrossScan";
constexpr int64_t kDirections = 4;
// Channels that one walk over the map carries: their state, step and output stay in L1, and a row
// of them is four cache lines. Narrower where that gives every thread a block.
constexpr int64_t kMaxBlock = 64;
constexpr int64_t kMinBlock = 16;

}  // namespace

Status CheckCrossScan(const CrossScanParams& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "projected", p.projected));
  MK_TRY(CheckPointer(kOp, "dt_weight", p.dt_weight));
  MK_TRY(CheckPointer(kOp, "dt_bias", p.dt_bias));
  MK_TRY(CheckPointer(kOp, "a", p.a));
  MK_TRY(CheckPointer(kOp, "d", p.d));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  MK_TRY(CheckRange(kOp, "height", p.height, 1, int64_t{1} << 24));
  MK_TRY(CheckRange(kOp, "width", p.width, 1, int64_t{1} << 24));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, int64_t{1} << 20));
  MK_TRY(CheckRange(kOp, "rank", p.rank, 1, int64_t{1} << 16));
  MK_TRY(CheckRange(kOp, "state", p.state, 1, 256));
  MK_TRY(CheckElements(kOp, "x", p.height * p.width, p.channels));
  MK_TRY(CheckElements(kOp, "projected", p.height * p.width, kDirections * (p.rank + 2 * p.state)));
  if (p.x == p.y) return InvalidArgument("CrossScan: y is x");
  return Ok();
}

OpCost CrossScanCost(const CrossScanParams& p) {
  const int64_t tokens = p.height * p.width;
  const int64_t fields = p.rank + 2 * p.state;
  const int64_t elements = tokens * (2 * p.channels + kDirections * fields) +
                           p.channels * (kDirections * (p.rank + 1 + p.state) + 1);
  return {elements * static_cast<int64_t>(sizeof(float)),
          kDirections * tokens * p.channels * (2 * p.rank + 5 * p.state + 9)};
}

Status CrossScanCpu(Context& context, const CrossScanParams& p, Isa isa) {
  const auto scan = MK_SIMD_PICK(isa, ScanDirection);
  const int64_t share = CeilDiv(CeilDiv(p.channels, context.host().threads()), kMinBlock);
  const int64_t block = std::min(kMaxBlock, share * kMinBlock);
  const int64_t blocks = CeilDiv(p.channels, block);
  const ScratchScope scope(context);
  MK_TRY_ASSIGN(float* const state, context.Scratch<float>(blocks * block * p.state));
  const int64_t steps_per_block =
      kDirections * p.height * p.width * block * (p.rank + 8 * (p.state + 1)) / 8;
  context.ParallelFor(blocks, GrainForSteps(steps_per_block), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * block;
      const int64_t count = std::min(block, p.channels - first);
      for (int64_t k = 0; k < kDirections; ++k) {
        scan(p, k, first, count, state + first * p.state);
      }
    }
  });
  return Ok();
}

Status CrossScan(Context& context, const CrossScanParams& params) {
  MK_TRY(CheckCrossScan(params));
  if (context.device() == DeviceKind::kCpu) return CrossScanCpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
