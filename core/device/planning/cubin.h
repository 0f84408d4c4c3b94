// What a cubin says of its kernels, read from its bytes.
#ifndef MERGEKERNEL_CORE_DEVICE_PLANNING_CUBIN_H_
#define MERGEKERNEL_CORE_DEVICE_PLANNING_CUBIN_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace mk {

struct KernelResources {
  int registers = 0;          // per thread
  uint32_t shared_bytes = 0;  // static, per block
  uint32_t stack_bytes = 0;   // local memory per thread: spills and arrays
};

// By name, every kernel of a cubin (ELF, e_machine 190). Every offset is checked: any bytes are
// safe. INVALID_ARGUMENT naming what is broken.
absl::StatusOr<std::map<std::string, KernelResources>> ReadCubin(std::string_view bytes);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_PLANNING_CUBIN_H_
