// Runs launches of op tests on a GPU instead of the emulator. The emulator's memory stays what the
// test reads and writes: each launch carries every buffer to the device, puts the device's
// addresses for the emulated ones into the parameters, waits, and carries the buffers back. Slow,
// whole, and the same tests for both.
#ifndef MERGEKERNEL_KERNELS_TESTING_GPU_MIRROR_H_
#define MERGEKERNEL_KERNELS_TESTING_GPU_MIRROR_H_

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/device/images.h"
#include "kernels/emulator/memory.h"

namespace mk::testing {

// One thread.
class GpuMirror {
 public:
  // As the environment variable MK_OP_DEVICE says ("cuda", "cuda:1"; the value is that of
  // `mergekerneld --device`): null where it is not set or "emulated", so that nobody's GPU is
  // touched unasked. An error where there is no such device: a test that was told to use a GPU
  // must not pass without one.
  static absl::StatusOr<std::unique_ptr<GpuMirror>> FromEnvironment();
  // Whether FromEnvironment makes one or fails.
  static bool Asked();

  // `device`: of kind "cuda".
  static absl::StatusOr<std::unique_ptr<GpuMirror>> Create(std::unique_ptr<Device> device);

  const Device& device() const { return *device_; }

  absl::StatusOr<Module*> Load(const std::string& name, absl::Span<const mk_kernel_image> images);

  // Parameters are structs of 8-byte aligned pointers and of other things: each aligned word that
  // is an emulated address within a buffer of `memory` is a pointer. INTERNAL when a kernel stored
  // within kGuardBytes beside a buffer, or into one that is frozen.
  absl::Status Launch(DeviceKernel& kernel, const LaunchDims& dims, const void* params,
                      uint64_t params_size_bytes, emu::DeviceMemory& memory);

  static constexpr uint64_t kGuardBytes = 256;

 private:
  GpuMirror(std::unique_ptr<Device> device, std::unique_ptr<Stream> stream)
      : device_(std::move(device)), stream_(std::move(stream)) {}

  struct Carried {
    emu::Buffer* buffer;
    std::unique_ptr<DeviceBuffer> there;  // a guard, the bytes, a guard
  };

  absl::StatusOr<std::vector<Carried>> CarryThere(emu::DeviceMemory& memory);
  absl::Status CarryBack(const std::vector<Carried>& carried, const std::string& kernel);

  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Stream> stream_;
  std::deque<LoadedImages> modules_;
};

}  // namespace mk::testing

#endif  // MERGEKERNEL_KERNELS_TESTING_GPU_MIRROR_H_
