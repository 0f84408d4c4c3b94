// Four floats of NEON, which every 64-bit Arm has. See vec.h.
#ifndef MERGEKERNEL_KERNELS_SIMD_VEC_NEON_H_
#define MERGEKERNEL_KERNELS_SIMD_VEC_NEON_H_

#include <arm_neon.h>

namespace mk::simd::base {

struct F32 {
  static constexpr int kLanes = 4;
  float32x4_t v;

  static MK_SIMD_INLINE F32 Set(float x) { return {vdupq_n_f32(x)}; }
  static MK_SIMD_INLINE F32 Load(const float* p) { return {vld1q_f32(p)}; }
  static MK_SIMD_INLINE F32 LoadFirst(const float* p, long n) {
    if (n >= 4) return {vld1q_f32(p)};
    const float32x2_t zero = vdup_n_f32(0.0f);
    if (n == 3) return {vcombine_f32(vld1_f32(p), vld1_lane_f32(p + 2, zero, 0))};
    if (n == 2) return {vcombine_f32(vld1_f32(p), zero)};
    return {vcombine_f32(n == 1 ? vld1_lane_f32(p, zero, 0) : zero, zero)};
  }
  MK_SIMD_INLINE void Store(float* p) const { vst1q_f32(p, v); }
  MK_SIMD_INLINE void StoreFirst(float* p, long n) const {
    if (n >= 4) return vst1q_f32(p, v);
    if (n >= 2) vst1_f32(p, vget_low_f32(v));
    if (n == 3) vst1q_lane_f32(p + 2, v, 2);
    if (n == 1) vst1q_lane_f32(p, v, 0);
  }
};

MK_SIMD_INLINE F32 operator+(F32 a, F32 b) { return {vaddq_f32(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator-(F32 a, F32 b) { return {vsubq_f32(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator*(F32 a, F32 b) { return {vmulq_f32(a.v, b.v)}; }
MK_SIMD_INLINE F32 operator/(F32 a, F32 b) { return {vdivq_f32(a.v, b.v)}; }
MK_SIMD_INLINE F32 MulAdd(F32 a, F32 b, F32 c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
MK_SIMD_INLINE F32 NegMulAdd(F32 a, F32 b, F32 c) { return {vfmsq_f32(c.v, a.v, b.v)}; }
// The instructions give NaN when either operand is.
MK_SIMD_INLINE F32 Max(F32 a, F32 b) { return {vmaxq_f32(a.v, b.v)}; }
MK_SIMD_INLINE F32 Min(F32 a, F32 b) { return {vminq_f32(a.v, b.v)}; }
MK_SIMD_INLINE F32 Abs(F32 v) { return {vabsq_f32(v.v)}; }
MK_SIMD_INLINE F32 NegAbs(F32 v) { return {vnegq_f32(vabsq_f32(v.v))}; }
MK_SIMD_INLINE F32 SelectNegative(F32 v, F32 a, F32 b) {
  return {vbslq_f32(vcltzq_f32(v.v), a.v, b.v)};
}
MK_SIMD_INLINE F32 ToExponent(F32 v) {
  return {vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(v.v), 23))};
}
MK_SIMD_INLINE float Sum(F32 v) { return vaddvq_f32(v.v); }

}  // namespace mk::simd::base

#endif  // MERGEKERNEL_KERNELS_SIMD_VEC_NEON_H_
