#include "core/device/open_device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/text.h"
#include "core/device/cuda/cuda_device.h"

namespace mk {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const OpenDeviceOptions& options) {
  if (options.name == "cpu") return NewCpuDevice(options.budget_bytes);
  absl::string_view name = options.name;
  CudaOptions cuda;
  if (absl::ConsumePrefix(&name, "cuda") &&
      (name.empty() ||
       (absl::ConsumePrefix(&name, ":") && absl::SimpleAtoi(name, &cuda.ordinal)))) {
    cuda.budget_bytes = options.budget_bytes;
    cuda.on_lost = options.on_lost;
    cuda.log = options.log;
    auto device = NewCudaDevice(cuda);
    if (device.ok()) return device;
    return absl::Status(device.status().code(),
                        absl::StrCat("device '", options.name, "': ", device.status().message()));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device '", Printable(options.name), "' is none of cpu, cuda, cuda:N"));
}

std::vector<std::string> DriverEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (text.rfind("LD_LIBRARY_PATH=", 0) == 0 || text.rfind("CUDA_", 0) == 0 ||
        text.rfind("HOME=", 0) == 0) {
      variables.push_back(text);
    }
  }
  return variables;
}

}  // namespace mk
