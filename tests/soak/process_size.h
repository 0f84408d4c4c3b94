// What another process holds, as its /proc folder tells.
#ifndef MERGEKERNEL_TESTS_SOAK_PROCESS_SIZE_H_
#define MERGEKERNEL_TESTS_SOAK_PROCESS_SIZE_H_

#include "absl/status/statusor.h"

namespace mk {

struct ProcessSize {
  double resident_bytes = 0;
  double descriptors = 0;
  double threads = 0;
  double mappings = 0;  // lines of its maps
  double children = 0;
};

// NOT_FOUND when the process is gone or hidden from us.
absl::StatusOr<ProcessSize> ReadProcessSize(int pid);

}  // namespace mk

#endif  // MERGEKERNEL_TESTS_SOAK_PROCESS_SIZE_H_
