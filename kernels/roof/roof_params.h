// The parameters of the roof kernels; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_ROOF_ROOF_PARAMS_H_
#define MERGEKERNEL_KERNELS_ROOF_ROOF_PARAMS_H_

#include "core/abi/mk_types.h"

namespace mk {

struct RoofCopyParams {
  const void* x;  // [bytes] device, 16-byte aligned, dense
  void* y;        // [bytes] device, 16-byte aligned, dense; apart from x
  mk_i64 bytes;   // a multiple of 16, 16 to 2^38
};

// What every thread adds up `steps` times, so that the result is known: kRoofChains accumulators,
// each + 16 x per step on tensor cores, + x on the fp32 units.
struct RoofMathParams {
  float* y;      // [blocks][kRoofThreads] fp32, device: a thread's accumulators added up
  float x;       // exact in fp16
  mk_i32 steps;  // 1 to 2^20
};

inline constexpr int kRoofThreads = 256;
inline constexpr int kRoofChains = 8;  // independent of each other, so that none waits for another

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_ROOF_ROOF_PARAMS_H_
