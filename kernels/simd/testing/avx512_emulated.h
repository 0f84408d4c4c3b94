// AVX-512 intrinsics on CPUs without it, for tests/avx512.sh alone: the package libsimde-dev's, and
// the three that it lacks.
#ifndef MERGEKERNEL_KERNELS_SIMD_TESTING_AVX512_EMULATED_H_
#define MERGEKERNEL_KERNELS_SIMD_TESTING_AVX512_EMULATED_H_

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

static inline simde__m512 MaskzLoad(simde__mmask16 mask, const float* p) {
  float lanes[16] = {};
  for (int i = 0; i < 16; ++i) {
    if ((mask >> i & 1) != 0) lanes[i] = p[i];
  }
  return simde_mm512_loadu_ps(lanes);
}

static inline void MaskStore(float* p, simde__mmask16 mask, simde__m512 v) {
  float lanes[16];
  simde_mm512_storeu_ps(lanes, v);
  for (int i = 0; i < 16; ++i) {
    if ((mask >> i & 1) != 0) p[i] = lanes[i];
  }
}

static inline simde__m256 UpperEight(simde__m512 v) {
  float lanes[16];
  simde_mm512_storeu_ps(lanes, v);
  return simde_mm256_loadu_ps(lanes + 8);
}

#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps(v, one) UpperEight(v)
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps(mask, p) MaskzLoad(mask, p)
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps(p, mask, v) MaskStore(p, mask, v)

#endif  // MERGEKERNEL_KERNELS_SIMD_TESTING_AVX512_EMULATED_H_
