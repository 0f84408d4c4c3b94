// What one model has on a device beside its lanes: weights memory, how it is written, and modules.
#ifndef MERGEKERNEL_CORE_LOADER_MODEL_DEVICE_H_
#define MERGEKERNEL_CORE_LOADER_MODEL_DEVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/device/memory_account.h"

namespace mk {

// One thread at a time.
class ModelDevice {
 public:
  // Called with "module 'scale': cubin sm_87 ..." for people.
  using LogLine = std::function<void(int level, const std::string& message)>;
  ModelDevice(Device& device, MemoryAccount& memory, LogLine log)
      : device_(device), memory_(memory), log_(std::move(log)) {}
  ~ModelDevice() { Release(); }

  // Charged to the weights region.
  absl::StatusOr<void*> Allocate(uint64_t size_bytes);
  // Into memory of Allocate. `host` may be reused at once; Wait before the device reads it.
  absl::Status Upload(void* device, const void* host, uint64_t size_bytes);
  absl::Status Wait();
  // Whether Upload is the only way to write.
  bool remote() const { return !device_.facts().host_addressable; }
  bool has_kernels() const { return device_.facts().kind != "cpu"; }

  absl::StatusOr<Module*> LoadModule(const std::string& name,
                                     absl::Span<const mk_kernel_image> images);
  absl::StatusOr<DeviceKernel*> FindKernel(Module* module, const std::string& name);

  // Modules first: their kernels name the memory. REQUIRES that no lane runs any more.
  void Release();

 private:
  struct Loaded {
    std::string name;
    std::unique_ptr<Module> module;
  };
  Device& device_;
  MemoryAccount& memory_;
  const LogLine log_;
  std::unique_ptr<Stream> stream_;  // made when first needed
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  std::vector<Loaded> modules_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_MODEL_DEVICE_H_
