// For tests and benches that go through the instruction sets.
#ifndef MERGEKERNEL_KERNELS_SIMD_TESTING_ISAS_H_
#define MERGEKERNEL_KERNELS_SIMD_TESTING_ISAS_H_

#include <vector>

#include "kernels/simd/isa.h"

namespace mk::testing {

// Every set that has code on this architecture, in rising order, whether the CPU has it or not.
inline std::vector<Isa> CompiledIsas() {
#if defined(__x86_64__)
  return {Isa::kBase, Isa::kAvx2, Isa::kAvx512};
#else
  return {Isa::kBase};
#endif
}

}  // namespace mk::testing

#endif  // MERGEKERNEL_KERNELS_SIMD_TESTING_ISAS_H_
