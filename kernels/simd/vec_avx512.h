// Sixteen floats of AVX-512 (F, DQ). See vec.h.
#ifndef MERGEKERNEL_KERNELS_SIMD_VEC_AVX512_H_
#define MERGEKERNEL_KERNELS_SIMD_VEC_AVX512_H_

#include <immintrin.h>

namespace mk::simd::avx512 {

struct F32 {
  static constexpr int kLanes = 16;
  __m512 v;

  static MK_SIMD_INLINE F32 Set(float x) { return {_mm512_set1_ps(x)}; }
  static MK_SIMD_INLINE F32 Load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static MK_SIMD_INLINE F32 LoadFirst(const float* p, long n) {
    return {_mm512_maskz_loadu_ps(First(n), p)};
  }
  MK_SIMD_INLINE void Store(float* p) const { _mm512_storeu_ps(p, v); }
  MK_SIMD_INLINE void StoreFirst(float* p, long n) const { _mm512_mask_storeu_ps(p, First(n), v); }

 private:
  static MK_SIMD_INLINE __mmask16 First(long n) {
    return static_cast<__mmask16>((1u << static_cast<unsigned>(n)) - 1u);
  }
};

MK_SIMD_INLINE F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator/(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 MulAdd(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
MK_SIMD_INLINE F32 NegMulAdd(F32 a, F32 b, F32 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
// The instructions give their second operand when either is NaN.
MK_SIMD_INLINE F32 Max(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 Min(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 Abs(F32 v) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), v.v)}; }
MK_SIMD_INLINE F32 NegAbs(F32 v) { return {_mm512_or_ps(_mm512_set1_ps(-0.0f), v.v)}; }
MK_SIMD_INLINE F32 SelectNegative(F32 v, F32 a, F32 b) {
  const __mmask16 mask = _mm512_cmp_ps_mask(v.v, _mm512_setzero_ps(), _CMP_LT_OQ);
  return {_mm512_mask_blend_ps(mask, b.v, a.v)};
}
MK_SIMD_INLINE F32 ToExponent(F32 v) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(v.v), 23))};
}
MK_SIMD_INLINE float Sum(F32 v) {
  const __m256 eights = _mm256_add_ps(_mm512_castps512_ps256(v.v), _mm512_extractf32x8_ps(v.v, 1));
  const __m128 fours = _mm_add_ps(_mm256_castps256_ps128(eights), _mm256_extractf128_ps(eights, 1));
  const __m128 pairs = _mm_add_ps(fours, _mm_movehl_ps(fours, fours));
  return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_shuffle_ps(pairs, pairs, 1)));
}

}  // namespace mk::simd::avx512

#endif  // MERGEKERNEL_KERNELS_SIMD_VEC_AVX512_H_
