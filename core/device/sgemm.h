// The one door to a library's matrix product: oneDNN on x86-64, OpenBLAS elsewhere
// (docs/design/dependencies.md).
#ifndef MERGEKERNEL_CORE_DEVICE_SGEMM_H_
#define MERGEKERNEL_CORE_DEVICE_SGEMM_H_

#include <string>

#include "absl/status/status.h"
#include "core/abi/mk_pack.h"

namespace mk {

// C = alpha * op(A) * op(B) + beta * C, row-major, on the calling thread alone. Any thread.
// INVALID_ARGUMENT naming the field for a negative size or a stride too small; INTERNAL when the
// library refuses (oneDNN writes code at run time and cannot where memory may not be both written
// and executed). `a`, `b` may be null only when no element of them is read.
absl::Status Sgemm(const mk_sgemm_args& args);

// For people: library, version and the kernel it chose for this CPU.
std::string SgemmKernelName();

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_SGEMM_H_
