// Parameters of the kernels that try single instructions; plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_SAMPLES_INSTRUCTIONS_PARAMS_H_
#define MERGEKERNEL_KERNELS_EMULATOR_SAMPLES_INSTRUCTIONS_PARAMS_H_

#include "core/abi/mk_types.h"

namespace mk {
namespace samples {

struct WordsParams {
  const mk_u32* in;  // [threads * in_words], device
  mk_u32* out;       // [threads * out_words], device
  mk_i32 a, b;       // what the kernel makes of them
};

}  // namespace samples
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_SAMPLES_INSTRUCTIONS_PARAMS_H_
