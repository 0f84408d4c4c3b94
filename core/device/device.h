// A device: who owns memory, streams and code on the thing that computes. One interface for `cpu`
// (here), and for `cuda`, `emulated` and `planning`, which come in rooms of their own behind it.
//
// Ownership: a Device outlives every DeviceBuffer, Stream and Module made from it. All methods: any
// thread.
#ifndef MERGEKERNEL_CORE_DEVICE_DEVICE_H_
#define MERGEKERNEL_CORE_DEVICE_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mk {

// What a device says of itself. Filled once, at start.
struct DeviceFacts {
  std::string kind;  // "cpu", "cuda", "emulated", "planning": what packs see as mk_host.device
  std::string name;  // for people: the CPU's or GPU's model
  uint64_t budget_bytes = 0;  // the most that all buffers together may take
  bool integrated = false;    // shares memory with the CPU
  int compute_units = 0;      // cores of a CPU, SMs of a GPU
};

// Memory of a device; given back by the destructor. Movable, not copyable.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual void* data() = 0;  // 64-byte aligned at least; device address space
  virtual uint64_t size_bytes() const = 0;
};

// Work in order. The CPU device's stream is the calling thread: all its methods return at once.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual absl::Status Synchronize() = 0;  // blocks until all work on it is done
};

// Device code of one pack. `Function` yields an opaque handle for `Device::Launch`.
class Module {
 public:
  virtual ~Module() = default;
  virtual absl::StatusOr<void*> Function(const char* name) = 0;
};

struct LaunchDims {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceFacts& facts() const = 0;

  // `size_bytes` of zeroed memory. RESOURCE_EXHAUSTED with the size, what is in use and the budget,
  // when it does not fit. Blocks; never called during a run.
  virtual absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(uint64_t size_bytes) = 0;
  virtual uint64_t in_use_bytes() const = 0;

  virtual absl::StatusOr<std::unique_ptr<Stream>> NewStream() = 0;

  // In the order of `stream`. On a device whose memory the host can address, a memcpy.
  virtual absl::Status CopyToDevice(Stream& stream, void* device, const void* host,
                                    uint64_t size_bytes) = 0;
  virtual absl::Status CopyToHost(Stream& stream, void* host, const void* device,
                                  uint64_t size_bytes) = 0;

  // UNIMPLEMENTED on devices that run CPU twins.
  virtual absl::StatusOr<std::unique_ptr<Module>> LoadModule(const void* image,
                                                             uint64_t size_bytes) = 0;
  virtual absl::Status Launch(Stream& stream, void* function, const LaunchDims& dims,
                              const void* params, uint64_t params_size_bytes) = 0;

  // Whether the device answers now: what readiness and the watchdog ask. Runs something tiny on it
  // and checks the result.
  virtual absl::Status Canary() = 0;
};

// The CPU as a device. `budget_bytes` 0: nine tenths of MemAvailable at the time of the call.
absl::StatusOr<std::unique_ptr<Device>> NewCpuDevice(uint64_t budget_bytes);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_DEVICE_H_
