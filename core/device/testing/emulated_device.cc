#include "core/device/testing/emulated_device.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "kernels/emulator/emulator.h"

namespace mk {
namespace {

// One emulator and what guards it: shared by all buffers and streams.
struct Machine {
  Mutex mutex;
  emu::Emulator emulator MK_GUARDED_BY(mutex);
  uint64_t in_use MK_GUARDED_BY(mutex) = 0;
  std::map<std::string, EmulatedKernelUse> use MK_GUARDED_BY(mutex);
};

class EmulatedBuffer : public DeviceBuffer {
 public:
  EmulatedBuffer(Machine& machine, void* data, uint64_t size)
      : machine_(machine), data_(data), size_(size) {}
  ~EmulatedBuffer() override {
    MutexLock lock(machine_.mutex);
    machine_.emulator.memory().Free(data_);
    machine_.in_use -= size_;
  }
  void* data() override { return data_; }
  uint64_t size_bytes() const override { return size_; }

 private:
  Machine& machine_;
  void* const data_;
  const uint64_t size_;
};

// Everything happens before the call returns.
class EmulatedStream : public Stream {
 public:
  absl::Status Synchronize() override { return absl::OkStatus(); }
};

class EmulatedKernel : public DeviceKernel {
 public:
  EmulatedKernel(const emu::Module& module, const emu::Kernel& kernel)
      : module_(module), kernel_(kernel), name_(kernel.name) {}
  const std::string& name() const override { return name_; }
  const emu::Module& module() const { return module_; }
  uint32_t params_bytes() const { return kernel_.params_bytes; }

 private:
  const emu::Module& module_;
  const emu::Kernel& kernel_;
  const std::string name_;
};

class EmulatedModule : public Module {
 public:
  explicit EmulatedModule(const emu::Module& module) : module_(module) {}
  absl::StatusOr<DeviceKernel*> Find(const std::string& name) override {
    const auto made = kernels_.find(name);
    if (made != kernels_.end()) return made->second.get();
    for (mk_u32 i = 0; i < module_.kernel_count; ++i) {
      if (name != module_.kernels[i].name) continue;
      auto& kernel = kernels_[name];
      kernel = std::make_unique<EmulatedKernel>(module_, module_.kernels[i]);
      return kernel.get();
    }
    return absl::NotFoundError(absl::StrCat("no kernel '", name, "' in the emulated module"));
  }

 private:
  const emu::Module& module_;
  std::map<std::string, std::unique_ptr<EmulatedKernel>> kernels_;
};

class EmulatedDeviceImpl : public EmulatedDevice {
 public:
  explicit EmulatedDeviceImpl(const EmulatedOptions& options) : options_(options.emulator) {
    facts_.kind = "emulated";
    facts_.name = "kernels/emulator";
    facts_.budget_bytes = options.budget_bytes;
    facts_.compute_units = options.compute_units;
    facts_.host_addressable = false;
    facts_.sm = options.sm;
    facts_.shared_bytes_per_block = options.emulator.shared_limit_bytes;
    facts_.shared_bytes_per_unit = facts_.shared_bytes_per_block + 1024;
  }

  const DeviceFacts& facts() const override { return facts_; }

  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(uint64_t size) override {
    const uint64_t taken = std::max<uint64_t>(size, 1);
    MutexLock lock(machine_.mutex);
    if (taken > facts_.budget_bytes || machine_.in_use > facts_.budget_bytes - taken) {
      return absl::ResourceExhaustedError(
          absl::StrCat("emulated device: ", size, " bytes asked for, ", machine_.in_use,
                       " in use, the budget is ", facts_.budget_bytes));
    }
    void* const data = machine_.emulator.memory().Allocate(taken, "device buffer");
    const std::vector<char> zeros(taken);
    machine_.emulator.memory().CopyIn(data, zeros.data(), taken);
    machine_.in_use += taken;
    return std::unique_ptr<DeviceBuffer>(std::make_unique<EmulatedBuffer>(machine_, data, taken));
  }
  uint64_t in_use_bytes() const override {
    MutexLock lock(machine_.mutex);
    return machine_.in_use;
  }
  uint64_t free_bytes() const override { return facts_.budget_bytes - in_use_bytes(); }

  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override {
    return std::unique_ptr<Stream>(std::make_unique<EmulatedStream>());
  }

  absl::Status CopyToDevice(Stream&, void* device, const void* host, uint64_t size) override {
    if (size == 0) return absl::OkStatus();
    MutexLock lock(machine_.mutex);
    machine_.emulator.memory().CopyIn(device, host, size);
    return absl::OkStatus();
  }
  absl::Status CopyToHost(Stream&, void* host, const void* device, uint64_t size) override {
    if (size == 0) return absl::OkStatus();
    MutexLock lock(machine_.mutex);
    machine_.emulator.memory().CopyOut(host, device, size);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Module>> LoadModule(const mk_kernel_image& image) override {
    if (image.kind != MK_IMAGE_EMULATED || image.size_bytes < sizeof(emu::Module)) {
      return absl::InvalidArgumentError("emulated device: the image is no emulated module");
    }
    const auto& module = *static_cast<const emu::Module*>(image.data);
    if (module.struct_size != sizeof(emu::Module)) {
      return absl::InvalidArgumentError(absl::StrCat("emulated module of ", module.struct_size,
                                                     " bytes, expected ", sizeof(emu::Module)));
    }
    return std::unique_ptr<Module>(std::make_unique<EmulatedModule>(module));
  }

  absl::Status Launch(Stream&, DeviceKernel& kernel, const LaunchDims& dims, const void* params,
                      uint64_t params_bytes) override {
    const auto& emulated = static_cast<const EmulatedKernel&>(kernel);
    const emu::LaunchShape shape = {{dims.grid[0], dims.grid[1], dims.grid[2]},
                                    {dims.block[0], dims.block[1], dims.block[2]},
                                    dims.shared_bytes};
    MutexLock lock(machine_.mutex);
    const emu::Report report =
        machine_.emulator.Run(emulated.module(), kernel.name(), shape, params,
                              static_cast<uint32_t>(params_bytes), options_);
    EmulatedKernelUse& use = machine_.use[kernel.name()];
    ++use.launches;
    use.work_bytes += dims.work.bytes;
    use.global_bytes += report.counts.global_bytes();
    if (report.ok()) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("launch of ", kernel.name(), ": ", report.Text()));
  }

  absl::Status Canary() override { return absl::OkStatus(); }

  std::map<std::string, EmulatedKernelUse> Use() const override {
    MutexLock lock(machine_.mutex);
    return machine_.use;
  }

 private:
  const emu::Options options_;
  DeviceFacts facts_;
  mutable Machine machine_;
};

}  // namespace

std::unique_ptr<EmulatedDevice> NewEmulatedDevice(const EmulatedOptions& options) {
  return std::make_unique<EmulatedDeviceImpl>(options);
}

}  // namespace mk
