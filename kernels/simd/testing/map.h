// The vector vocabulary and its math over arrays, for the test and the bench.
#ifndef MERGEKERNEL_KERNELS_SIMD_TESTING_MAP_H_
#define MERGEKERNEL_KERNELS_SIMD_TESTING_MAP_H_

#include "core/abi/mk_types.h"
#include "kernels/simd/dispatch.h"

namespace mk {

enum class MapOp : mk_u32 {
  kExp,
  kSoftplus,
  kGelu,
  kSilu,
  kRelu,
  kCopy,
  kAbs,
  kNegAbs,
  kMaxZero,         // Max(0, x)
  kMinOne,          // Min(1, x)
  kSquarePlusOne,   // MulAdd(x, x, 1)
  kOneMinusSquare,  // NegMulAdd(x, x, 1)
  kSignSelect,      // SelectNegative(x, 1, 2)
};

inline constexpr int kPeakChains = 10;  // in flight: two units of a latency of four or five

namespace simd {

// y[i] = op(x[i]); the last, partial vector through LoadFirst and StoreFirst.
MK_SIMD_DECLARE(void Map(MapOp op, const float* x, float* y, mk_i64 count))
// The lanes of one vector at x, summed.
MK_SIMD_DECLARE(float SumLanes(const float* x))
MK_SIMD_DECLARE(mk_i64 Lanes())
// `rounds` multiply-adds of every lane of kPeakChains vectors, all in registers: the roof that
// products are held against. 2 rounds kPeakChains Lanes() FLOP.
MK_SIMD_DECLARE(float Peak(mk_i64 rounds))

}  // namespace simd
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_SIMD_TESTING_MAP_H_
