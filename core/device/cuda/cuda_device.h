// A GPU as a device, through the CUDA driver. docs/design/cuda.md tells why it is as it is.
#ifndef MERGEKERNEL_CORE_DEVICE_CUDA_CUDA_DEVICE_H_
#define MERGEKERNEL_CORE_DEVICE_CUDA_CUDA_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/device/cuda/driver.h"
#include "core/device/device.h"

namespace mk {

struct CudaOptions {
  int ordinal = 0;
  // 0: nine tenths of what is free when the device is made.
  uint64_t budget_bytes = 0;
  // Pinned host memory per stream: four slots of this.
  uint64_t staging_slot_bytes = 1 << 20;
  const char* library = kDriverLibrary;
  // Called once, on the thread that saw the first error after which the device answers nothing any
  // more (docs/design/cuda.md has the list). Must not block and must not call the device.
  std::function<void(const absl::Status&)> on_lost;
  std::function<void(int level, const std::string&)> log;  // 0 debug .. 3 error; any thread
  std::function<uint64_t()> mem_available;                 // empty: MemAvailable of /proc/meminfo
};

// FAILED_PRECONDITION saying which of driver, version and device is lacking; RESOURCE_EXHAUSTED
// when there is no memory for its few own buffers. Never another kind of device. Blocks.
absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(const CudaOptions& options);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_CUDA_CUDA_DEVICE_H_
