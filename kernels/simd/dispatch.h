// How an op finds the loop that was compiled for an instruction set:
//
//   namespace mk::simd {
//   MK_SIMD_DECLARE(void NormRows(const LayerNormParams& p, mk_i64 begin, mk_i64 end))
//   }
//   MK_SIMD_PICK(isa, NormRows)(p, begin, end);
//
// REQUIRES of a pick that HasIsa(isa) holds. There is no table and so nothing to fill in at start.
#ifndef MERGEKERNEL_KERNELS_SIMD_DISPATCH_H_
#define MERGEKERNEL_KERNELS_SIMD_DISPATCH_H_

#include "kernels/simd/isa.h"

#if defined(__x86_64__)

#define MK_SIMD_DECLARE(...) \
  namespace base {           \
  __VA_ARGS__;               \
  }                          \
  namespace avx2 {           \
  __VA_ARGS__;               \
  }                          \
  namespace avx512 {         \
  __VA_ARGS__;               \
  }
#define MK_SIMD_PICK(isa, name)                            \
  ((isa) == ::mk::Isa::kAvx512 ? &::mk::simd::avx512::name \
   : (isa) == ::mk::Isa::kAvx2 ? &::mk::simd::avx2::name   \
                               : &::mk::simd::base::name)

#else

#define MK_SIMD_DECLARE(...) \
  namespace base {           \
  __VA_ARGS__;               \
  }
#define MK_SIMD_PICK(isa, name) (static_cast<void>(isa), &::mk::simd::base::name)

#endif

#endif  // MERGEKERNEL_KERNELS_SIMD_DISPATCH_H_
