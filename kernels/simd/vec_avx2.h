// Eight floats of AVX2 with FMA. See vec.h.
#ifndef MERGEKERNEL_KERNELS_SIMD_VEC_AVX2_H_
#define MERGEKERNEL_KERNELS_SIMD_VEC_AVX2_H_

#include <immintrin.h>

namespace mk::simd::avx2 {

struct F32 {
  static constexpr int kLanes = 8;
  __m256 v;

  static MK_SIMD_INLINE F32 Set(float x) { return {_mm256_set1_ps(x)}; }
  static MK_SIMD_INLINE F32 Load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static MK_SIMD_INLINE F32 LoadFirst(const float* p, long n) {
    return {_mm256_maskload_ps(p, First(n))};
  }
  MK_SIMD_INLINE void Store(float* p) const { _mm256_storeu_ps(p, v); }
  MK_SIMD_INLINE void StoreFirst(float* p, long n) const { _mm256_maskstore_ps(p, First(n), v); }

 private:
  static MK_SIMD_INLINE __m256i First(long n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

MK_SIMD_INLINE F32 operator+(F32 a, F32 b) { return {_mm256_add_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator-(F32 a, F32 b) { return {_mm256_sub_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator*(F32 a, F32 b) { return {_mm256_mul_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator/(F32 a, F32 b) { return {_mm256_div_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 MulAdd(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
MK_SIMD_INLINE F32 NegMulAdd(F32 a, F32 b, F32 c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }
// The instructions give their second operand when either is NaN.
MK_SIMD_INLINE F32 Max(F32 a, F32 b) { return {_mm256_max_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 Min(F32 a, F32 b) { return {_mm256_min_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 Abs(F32 v) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), v.v)}; }
MK_SIMD_INLINE F32 NegAbs(F32 v) { return {_mm256_or_ps(_mm256_set1_ps(-0.0f), v.v)}; }
MK_SIMD_INLINE F32 SelectNegative(F32 v, F32 a, F32 b) {
  const __m256 mask = _mm256_cmp_ps(v.v, _mm256_setzero_ps(), _CMP_LT_OQ);
  return {_mm256_blendv_ps(b.v, a.v, mask)};
}
MK_SIMD_INLINE F32 ToExponent(F32 v) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(v.v), 23))};
}
MK_SIMD_INLINE float Sum(F32 v) {
  const __m128 fours = _mm_add_ps(_mm256_castps256_ps128(v.v), _mm256_extractf128_ps(v.v, 1));
  const __m128 pairs = _mm_add_ps(fours, _mm_movehl_ps(fours, fours));
  return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_shuffle_ps(pairs, pairs, 1)));
}

}  // namespace mk::simd::avx2

#endif  // MERGEKERNEL_KERNELS_SIMD_VEC_AVX2_H_
