// A device that clocks each launch of the one behind it, for measurements: with the device's own
// events, several times in a row between two of them.
#ifndef MERGEKERNEL_CORE_DEVICE_TIMED_DEVICE_H_
#define MERGEKERNEL_CORE_DEVICE_TIMED_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/device.h"

namespace mk {

struct TimedLaunch {
  std::string kernel;
  LaunchDims dims;
  double seconds = 0;  // of one, the mean of the repetitions
};

// One thread at a time, but for facts and the byte counts. Each launch is made once for its result
// to be there (and to warm what it reads), then `repeats` times between two events; so a kernel
// that changes its own inputs computes other values than in an ordinary run. Waits at each launch:
// a run on it as a whole says nothing, and captures are refused.
class TimedDevice : public Device {
 public:
  // `device` outlives it. INVALID_ARGUMENT for repeats below 1; UNIMPLEMENTED where it has no
  // events.
  static absl::StatusOr<std::unique_ptr<TimedDevice>> Create(Device& device, int repeats);

  // In the order they came.
  const std::vector<TimedLaunch>& launches() const { return launches_; }
  void Clear() { launches_.clear(); }

  const DeviceFacts& facts() const override { return device_.facts(); }
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(uint64_t size_bytes) override {
    return device_.Allocate(size_bytes);
  }
  uint64_t in_use_bytes() const override { return device_.in_use_bytes(); }
  uint64_t free_bytes() const override { return device_.free_bytes(); }
  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override { return device_.NewStream(); }
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override { return device_.NewEvent(); }
  absl::Status CopyToDevice(Stream& stream, void* device, const void* host,
                            uint64_t size_bytes) override {
    return device_.CopyToDevice(stream, device, host, size_bytes);
  }
  absl::Status CopyToHost(Stream& stream, void* host, const void* device,
                          uint64_t size_bytes) override {
    return device_.CopyToHost(stream, host, device, size_bytes);
  }
  absl::StatusOr<std::unique_ptr<Module>> LoadModule(const mk_kernel_image& image) override {
    return device_.LoadModule(image);
  }
  absl::Status Launch(Stream& stream, DeviceKernel& kernel, const LaunchDims& dims,
                      const void* params, uint64_t params_size_bytes) override;
  absl::Status lost() const override { return device_.lost(); }
  absl::Status Canary() override { return device_.Canary(); }

 private:
  TimedDevice(Device& device, int repeats, std::unique_ptr<Event> begin, std::unique_ptr<Event> end)
      : device_(device), repeats_(repeats), begin_(std::move(begin)), end_(std::move(end)) {}

  Device& device_;
  const int repeats_;
  const std::unique_ptr<Event> begin_, end_;
  std::vector<TimedLaunch> launches_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_TIMED_DEVICE_H_
