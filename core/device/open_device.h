// A device by the name that an operator gives it. What is asked for is opened or refused: never
// another one instead.
#ifndef MERGEKERNEL_CORE_DEVICE_OPEN_DEVICE_H_
#define MERGEKERNEL_CORE_DEVICE_OPEN_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device/device.h"

namespace mk {

struct OpenDeviceOptions {
  std::string name = "cpu";   // "cpu", "cuda" (the first), "cuda:N"
  uint64_t budget_bytes = 0;  // 0: the device decides
  // Of a GPU; see CudaOptions.
  std::function<void(const absl::Status&)> on_lost;
  std::function<void(int level, const std::string&)> log;
};

// INVALID_ARGUMENT for a name that names no kind of device; FAILED_PRECONDITION where this machine
// has no such device, saying what is lacking. Blocks.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const OpenDeviceOptions& options);

// Of this process's environment, what a process that opens a device has to be given ("NAME=value"):
// where the loader looks for a driver, which GPU it shows, where it keeps what it compiled.
std::vector<std::string> DriverEnvironment();

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_OPEN_DEVICE_H_
