// y[i] = x[63 - i], by way of shared memory: the least kernel with a barrier.
//
// Grid: 1. Block: 64 threads.
#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"
#include "kernels/testing/op_context_sample_params.h"

extern "C" __global__ void __launch_bounds__(64)
    mk_sample_reverse(const mk::samples::ReverseParams p) {
  using namespace mk::device;
  MK_SHARED(half, tile, 64);
  const int t = static_cast<int>(threadIdx.x);
  Store(tile + t, Load(p.x + t));
  SyncThreads();  // the other warp's half is there; and x is read, should y be x
  Store(p.y + t, Load(tile + 63 - t));
}
