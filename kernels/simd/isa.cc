#include "kernels/simd/isa.h"

#if defined(__x86_64__)
// The header is C, and clang has no _Bool in strict C++.
#if defined(__clang__)
#define _Bool bool
#endif
#include <sys/platform/x86.h>
#undef _Bool
#endif

// The ceiling of the build, from BUILD.
#ifndef MK_SIMD_CEILING
#define MK_SIMD_CEILING kAvx512
#endif

namespace mk {
namespace {

constexpr Isa kCeiling = Isa::MK_SIMD_CEILING;

// tests/avx512.sh: the AVX-512 loops in emulation.
#if defined(MK_SIMD_EMULATED_AVX512)
[[maybe_unused]] constexpr bool kEmulated = true;
#else
[[maybe_unused]] constexpr bool kEmulated = false;
#endif

}  // namespace

// The C library's answer rather than the compiler's __builtin_cpu_supports, whose table is filled
// by a static constructor in every object that links it: the loader refuses packs that have one.
// "Active" includes that the system saves the registers.
bool HasIsa(Isa isa) {
  switch (isa) {
    case Isa::kBase:
      return true;
#if defined(__x86_64__)
    case Isa::kAvx2:
      return CPU_FEATURE_ACTIVE(AVX2) && CPU_FEATURE_ACTIVE(FMA);
    case Isa::kAvx512:
      if (kEmulated) return true;
      return CPU_FEATURE_ACTIVE(AVX512F) && CPU_FEATURE_ACTIVE(AVX512BW) &&
             CPU_FEATURE_ACTIVE(AVX512DQ) && CPU_FEATURE_ACTIVE(AVX512VL) && HasIsa(Isa::kAvx2);
#else
    case Isa::kAvx2:
    case Isa::kAvx512:
      return false;
#endif
  }
  return false;
}

Isa BestIsa() {
  if (kCeiling >= Isa::kAvx512 && HasIsa(Isa::kAvx512)) return Isa::kAvx512;
  if (kCeiling >= Isa::kAvx2 && HasIsa(Isa::kAvx2)) return Isa::kAvx2;
  return Isa::kBase;
}

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kBase:
#if defined(__x86_64__)
      return "SSE2";
#else
      return "NEON";
#endif
    case Isa::kAvx2:
      return "AVX2";
    case Isa::kAvx512:
      return "AVX-512";
  }
  return "unknown";
}

}  // namespace mk
