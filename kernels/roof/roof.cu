// What a GPU gives at most, by the instructions that this project's kernels are made of.
//
// mk_roof_copy: grid ceil(bytes / 16 / 1024), block 256 threads, four 16-byte words each, a block's
// width apart, all loaded before the first is stored. Moves 2 bytes per byte.
// mk_roof_tensor: any grid, block 256 threads. Per warp and step kRoofChains mma.sync m16n8k16:
// 4096 FLOP each. No memory.
// mk_roof_fp32: the same with kRoofChains fused multiply-adds per thread and step: 2 FLOP each.
#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"
#include "kernels/roof/roof_params.h"

namespace mk {
namespace {

constexpr int kWords = 4;

}  // namespace
}  // namespace mk

extern "C" __global__ void __launch_bounds__(256) mk_roof_copy(const mk::RoofCopyParams p) {
  using namespace mk::device;
  const mk_i64 count = p.bytes / 16;
  const mk_i64 first =
      static_cast<mk_i64>(blockIdx.x) * (256 * mk::kWords) + static_cast<mk_i64>(threadIdx.x);
  const Words4* x = As<Words4>(p.x);
  Words4* y = As<Words4>(p.y);
  Words4 words[mk::kWords];
  MK_UNROLL
  for (int i = 0; i < mk::kWords; ++i) {
    if (first + i * 256 < count) words[i] = Load(x + first + i * 256);
  }
  MK_UNROLL
  for (int i = 0; i < mk::kWords; ++i) {
    if (first + i * 256 < count) Store(y + first + i * 256, words[i]);
  }
}

extern "C" __global__ void __launch_bounds__(256) mk_roof_tensor(const mk::RoofMathParams p) {
  using namespace mk::device;
  const mk_u32 x = PackHalf2(p.x, p.x), one = PackHalf2(1, 1);
  const mk_u32 a[4] = {x, x, x, x};
  const mk_u32 b[2] = {one, one};
  float acc[mk::kRoofChains][4] = {};
  for (int step = 0; step < p.steps; ++step) {
    MK_UNROLL
    for (int c = 0; c < mk::kRoofChains; ++c) MmaF16(acc[c], a, b, acc[c]);
  }
  float sum = 0;
  MK_UNROLL
  for (int c = 0; c < mk::kRoofChains; ++c) sum += acc[c][0];
  Store(p.y + static_cast<mk_i64>(blockIdx.x) * 256 + static_cast<mk_i64>(threadIdx.x), sum);
}

extern "C" __global__ void __launch_bounds__(256) mk_roof_fp32(const mk::RoofMathParams p) {
  using namespace mk::device;
  float acc[mk::kRoofChains] = {};
  // The factor is 1 but the compiler does not know it: multiply-adds, not additions.
  const float one = p.x == 0 ? 0.0f : 1.0f;
  for (int step = 0; step < p.steps; ++step) {
    MK_UNROLL
    for (int c = 0; c < mk::kRoofChains; ++c) acc[c] = Fma(acc[c], one, p.x);
  }
  float sum = 0;
  MK_UNROLL
  for (int c = 0; c < mk::kRoofChains; ++c) sum += acc[c];
  Store(p.y + static_cast<mk_i64>(blockIdx.x) * 256 + static_cast<mk_i64>(threadIdx.x), sum);
}
