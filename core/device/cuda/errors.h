// What a CUresult means to us: a status that names the call and the result, and whether the process
// can go on. docs/design/cuda.md has the table with its sources.
#ifndef MERGEKERNEL_CORE_DEVICE_CUDA_ERRORS_H_
#define MERGEKERNEL_CORE_DEVICE_CUDA_ERRORS_H_

#include <string>

#include "absl/status/status.h"
#include "core/device/cuda/driver.h"
#include "core/device/cuda/driver_types.h"

namespace mk {

enum class CudaErrorClass {
  kSuccess,
  kSticky,   // every later call fails too: the process must end
  kMemory,   // did not fit; nothing was taken
  kImage,    // this driver or GPU cannot take the image: another may do
  kCapture,  // the work cannot be captured: it may be launched instead
  kMachine,  // the driver or the device is not there or not ready
  kUse,      // a call we should not have made
};

CudaErrorClass ClassOf(cu::Result result);
inline bool IsSticky(cu::Result result) { return ClassOf(result) == CudaErrorClass::kSticky; }

// "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY: out of memory". The number where the driver has no
// name.
std::string CudaText(const Driver& driver, const char* call, cu::Result result);

// REQUIRES a result that is not success. The code by class: kMemory RESOURCE_EXHAUSTED, kImage
// INVALID_ARGUMENT, kMachine and kCapture FAILED_PRECONDITION, NOT_FOUND where a name is not there,
// all else INTERNAL.
absl::Status CudaError(const Driver& driver, const char* call, cu::Result result);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_CUDA_ERRORS_H_
