// Reductions over a warp, by shuffles: every lane gets the result, and it is the same in all of
// them.
#ifndef MERGEKERNEL_KERNELS_DEVICE_WARP_H_
#define MERGEKERNEL_KERNELS_DEVICE_WARP_H_

#include "kernels/device/ptx.h"

namespace mk {
namespace device {

// The sum over segments of kWidth lanes (a power of two up to 32). All 32 lanes take part.
template <int kWidth = kWarpSize>
MK_DEVICE float WarpSum(float value MK_SITE) {
  MK_UNROLL
  for (int step = kWidth / 2; step > 0; step /= 2)
    value += ShuffleXor(value, step, kWarpSize, kFullMask MK_PASS_SITE);
  return value;
}

template <int kWidth = kWarpSize>
MK_DEVICE float WarpMax(float value MK_SITE) {
  MK_UNROLL
  for (int step = kWidth / 2; step > 0; step /= 2) {
    value = Max(value, ShuffleXor(value, step, kWarpSize, kFullMask MK_PASS_SITE));
  }
  return value;
}

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_DEVICE_WARP_H_
