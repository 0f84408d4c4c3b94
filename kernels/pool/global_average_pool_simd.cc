#include "kernels/pool/global_average_pool_simd.h"

#include "kernels/simd/vec_math.h"

namespace mk::simd::MK_SIMD_ISA {
namespace {

constexpr mk_i64 kLanes = F32::kLanes;
constexpr int kVectors = 4;    // of channels, whose sums are held at once
constexpr mk_i64 kGroup = 64;  // rows summed before they are added to the total

// kCount vectors of channels from c on, or the first `count` channels of one.
template <int kCount, bool kWhole>
MK_SIMD_INLINE void Pool(const GlobalAveragePoolParams& p, mk_i64 c, mk_i64 count) {
  F32 total[kCount];
  for (int v = 0; v < kCount; ++v) total[v] = F32::Set(0.0f);
  for (mk_i64 group = 0; group < p.rows; group += kGroup) {
    F32 sum[kCount];
    for (int v = 0; v < kCount; ++v) sum[v] = F32::Set(0.0f);
    const mk_i64 end = group + kGroup < p.rows ? group + kGroup : p.rows;
    for (mk_i64 row = group; row < end; ++row) {
      const float* x = p.x + row * p.channels + c;
      for (int v = 0; v < kCount; ++v) {
        sum[v] = sum[v] + LoadPart<F32, kWhole>(x + v * kLanes, count);
      }
    }
    for (int v = 0; v < kCount; ++v) total[v] = total[v] + sum[v];
  }
  const F32 rows = F32::Set(static_cast<float>(p.rows));
  for (int v = 0; v < kCount; ++v) {
    StorePart<kWhole>(total[v] / rows, p.y + c + v * kLanes, count);
  }
}

}  // namespace

void PoolChannels(const GlobalAveragePoolParams& p, mk_i64 begin, mk_i64 end) {
  mk_i64 c = begin;
  for (; c + kVectors * kLanes <= end; c += kVectors * kLanes) Pool<kVectors, true>(p, c, kLanes);
  for (; c + kLanes <= end; c += kLanes) Pool<1, true>(p, c, kLanes);
  if (c < end) Pool<1, false>(p, c, end - c);
}

}  // namespace mk::simd::MK_SIMD_ISA
