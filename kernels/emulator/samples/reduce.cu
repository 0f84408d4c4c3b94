// The sum of a vector. Blocks add up their part in shared memory; the block that finishes last adds
// up the partial sums, in order, so that the result does not depend on which one that is.
//
// Grid: any. Block: 256 threads. Moves 4 count bytes, and 8 bytes per block.
#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/warp.h"
#include "kernels/emulator/samples/samples_params.h"

namespace mk {
namespace samples {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / device::kWarpSize;

// The sum over the block, in thread 0. `warp_sums` has one word per warp, and is free again behind
// the next barrier.
MK_DEVICE float BlockSum(float value, float* warp_sums, int thread) {
  using namespace device;
  const float warp_sum = WarpSum(value);
  if (thread % kWarpSize == 0) Store(warp_sums + thread / kWarpSize, warp_sum);
  SyncThreads();  // the first warp reads what all have written
  float sum = 0.0f;
  if (thread < kWarpSize) sum = WarpSum(thread < kWarps ? Load(warp_sums + thread) : 0.0f);
  return sum;
}

}  // namespace
}  // namespace samples
}  // namespace mk

extern "C" __global__ void __launch_bounds__(256)
    mk_sample_reduce(const mk::samples::ReduceParams p) {
  using namespace mk::device;
  using namespace mk::samples;
  MK_SHARED(float, warp_sums, kWarps);
  MK_SHARED(mk_u32, is_last, 1);
  const int thread = static_cast<int>(threadIdx.x);
  const int blocks = static_cast<int>(gridDim.x);

  float sum = 0.0f;
  for (int i = static_cast<int>(blockIdx.x) * kThreads + thread; i < p.count;
       i += blocks * kThreads) {
    sum += Load(p.x + i);
  }
  sum = BlockSum(sum, warp_sums, thread);
  if (thread == 0) {
    Store(p.partials + blockIdx.x, sum);
    FenceDevice();  // the partial sum is seen by whoever sees the count
    const mk_u32 before = AtomicAdd(p.finished, 1u);
    Store(is_last, before + 1 == gridDim.x ? 1u : 0u);
  }
  SyncThreads();  // is_last is written; and warp_sums is free again
  if (Load(is_last) == 0) return;

  float total = 0.0f;
  for (int i = thread; i < blocks; i += kThreads) total += Load(p.partials + i);
  total = BlockSum(total, warp_sums, thread);
  if (thread == 0) {
    Store(p.sum, total);
    AtomicExchange(p.finished, 0u);
  }
}
