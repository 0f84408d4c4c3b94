// Which instruction set a CPU twin runs with. The choice is a plain value: ops take the best one
// unless a test or a bench names another.
//
// How a loop is compiled for several of them is told in README.md. This header and dispatch.h are
// seen by units of every set: they hold no inline function.
#ifndef MERGEKERNEL_KERNELS_SIMD_ISA_H_
#define MERGEKERNEL_KERNELS_SIMD_ISA_H_

namespace mk {

enum class Isa {
  kBase = 0,    // what every CPU of the architecture has: SSE2 on x86-64, NEON on Arm
  kAvx2 = 1,    // AVX2 with FMA
  kAvx512 = 2,  // AVX-512 F, BW, DQ, VL
};

// Whether this CPU and its system have `isa`. Any thread, a few nanoseconds: the C library asked
// the CPU when the process began.
bool HasIsa(Isa isa);

// The widest that this CPU has, up to the ceiling of the build: `--define=simd=base` or `=avx2`
// lowers it for a whole pack, to test or to time one.
Isa BestIsa();

// "SSE2", "NEON", "AVX2", "AVX-512".
const char* IsaName(Isa isa);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_SIMD_ISA_H_
