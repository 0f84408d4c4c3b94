// Four floats of SSE2. See vec.h.
#ifndef MERGEKERNEL_KERNELS_SIMD_VEC_SSE2_H_
#define MERGEKERNEL_KERNELS_SIMD_VEC_SSE2_H_

#include <emmintrin.h>

namespace mk::simd::base {

struct F32 {
  static constexpr int kLanes = 4;
  __m128 v;

  static MK_SIMD_INLINE F32 Set(float x) { return {_mm_set1_ps(x)}; }
  static MK_SIMD_INLINE F32 Load(const float* p) { return {_mm_loadu_ps(p)}; }
  static MK_SIMD_INLINE F32 LoadFirst(const float* p, long n) {
    const __m128 zero = _mm_setzero_ps();
    if (n >= 4) return {_mm_loadu_ps(p)};
    if (n == 3) return {_mm_movelh_ps(LoadTwo(p), _mm_load_ss(p + 2))};
    if (n == 2) return {LoadTwo(p)};
    return {n == 1 ? _mm_load_ss(p) : zero};
  }
  MK_SIMD_INLINE void Store(float* p) const { _mm_storeu_ps(p, v); }
  MK_SIMD_INLINE void StoreFirst(float* p, long n) const {
    if (n >= 4) return _mm_storeu_ps(p, v);
    if (n >= 2) _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_castps_si128(v));
    if (n == 3) _mm_store_ss(p + 2, _mm_movehl_ps(v, v));
    if (n == 1) _mm_store_ss(p, v);
  }

 private:
  static MK_SIMD_INLINE __m128 LoadTwo(const float* p) {
    return _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
};

MK_SIMD_INLINE F32 operator+(F32 a, F32 b) { return {_mm_add_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator-(F32 a, F32 b) { return {_mm_sub_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator*(F32 a, F32 b) { return {_mm_mul_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator/(F32 a, F32 b) { return {_mm_div_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 MulAdd(F32 a, F32 b, F32 c) { return a * b + c; }
MK_SIMD_INLINE F32 NegMulAdd(F32 a, F32 b, F32 c) { return c - a * b; }
// The instructions give their second operand when either is NaN.
MK_SIMD_INLINE F32 Max(F32 a, F32 b) { return {_mm_max_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 Min(F32 a, F32 b) { return {_mm_min_ps(a.v, b.v)}; }
MK_SIMD_INLINE F32 Abs(F32 v) { return {_mm_andnot_ps(_mm_set1_ps(-0.0f), v.v)}; }
MK_SIMD_INLINE F32 NegAbs(F32 v) { return {_mm_or_ps(_mm_set1_ps(-0.0f), v.v)}; }
MK_SIMD_INLINE F32 SelectNegative(F32 v, F32 a, F32 b) {
  const __m128 mask = _mm_cmplt_ps(v.v, _mm_setzero_ps());
  return {_mm_or_ps(_mm_and_ps(mask, a.v), _mm_andnot_ps(mask, b.v))};
}
MK_SIMD_INLINE F32 ToExponent(F32 v) {
  return {_mm_castsi128_ps(_mm_slli_epi32(_mm_castps_si128(v.v), 23))};
}
MK_SIMD_INLINE float Sum(F32 v) {
  const __m128 pairs = _mm_add_ps(v.v, _mm_movehl_ps(v.v, v.v));
  return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_shuffle_ps(pairs, pairs, 1)));
}

}  // namespace mk::simd::base

#endif  // MERGEKERNEL_KERNELS_SIMD_VEC_SSE2_H_
