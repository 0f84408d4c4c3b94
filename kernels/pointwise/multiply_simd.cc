#include "kernels/pointwise/multiply_simd.h"

#include "kernels/simd/vec.h"

namespace mk::simd::MK_SIMD_ISA {

void MultiplyRange(const MultiplyParams& p, mk_i64 begin, mk_i64 end) {
  mk_i64 i = begin;
  for (; i + F32::kLanes <= end; i += F32::kLanes) {
    (F32::Load(p.a + i) * F32::Load(p.b + i)).Store(p.y + i);
  }
  if (i < end) {
    (F32::LoadFirst(p.a + i, end - i) * F32::LoadFirst(p.b + i, end - i))
        .StoreFirst(p.y + i, end - i);
  }
}

}  // namespace mk::simd::MK_SIMD_ISA
