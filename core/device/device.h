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
#include "core/abi/mk_pack.h"

namespace mk {

// What a device says of itself. Filled once, at start.
struct DeviceFacts {
  std::string kind;  // "cpu", "cuda", "emulated", "planning": what packs see as mk_host.device
  std::string name;  // for people: the CPU's or GPU's model
  uint64_t budget_bytes = 0;  // the most that all buffers together may take
  bool integrated = false;    // shares memory with the CPU
  int compute_units = 0;      // cores of a CPU, SMs of a GPU
  // The host may read and write its buffers. Where not, only copies reach them, and addresses must
  // not be followed on the host.
  bool host_addressable = true;

  // Of GPUs; 0 elsewhere.
  int sm = 0;              // compute capability times ten: 87
  int driver_version = 0;  // the newest CUDA version that the driver supports: 12060
  uint64_t l2_bytes = 0;
  uint64_t shared_bytes_per_unit = 0;
  uint64_t shared_bytes_per_block = 0;  // the most that a kernel can opt into
  int clock_khz = 0;
  int memory_clock_khz = 0;  // as the driver says it; known to be wrong on some Orin boards
};

// Memory of a device; given back by the destructor. Movable, not copyable.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual void* data() = 0;  // 64-byte aligned at least; device address space
  virtual uint64_t size_bytes() const = 0;
};

// A run's launches, captured once and launched as one. Belongs to the stream's device; does not
// outlive the modules and buffers that its launches name.
class Graph {
 public:
  virtual ~Graph() = default;
};

// Work in order. One thread at a time. The CPU device's stream is the calling thread: all its
// methods return at once. The destructor waits for what is under way.
class Stream {
 public:
  virtual ~Stream() = default;
  // Blocks until all work on it is done, and what CopyToHost promised is there.
  virtual absl::Status Synchronize() = 0;

  // Between the two, launches on the stream are recorded and not run; nothing else may be called on
  // it, and this thread must not allocate or wait. FAILED_PRECONDITION from EndCapture when
  // something was called that cannot be captured; the stream is then as before. UNIMPLEMENTED on
  // devices without graphs: run by launches.
  virtual absl::Status BeginCapture() { return absl::UnimplementedError("no graphs here"); }
  virtual absl::StatusOr<std::unique_ptr<Graph>> EndCapture() {
    return absl::UnimplementedError("no graphs here");
  }
  virtual absl::Status LaunchGraph(Graph&) { return absl::UnimplementedError("no graphs here"); }
};

// A point in a stream's work. One thread at a time.
class Event {
 public:
  virtual ~Event() = default;
  virtual absl::Status Record(Stream& stream) = 0;
  virtual absl::Status Synchronize() = 0;  // blocks until the work before it is done
  // Milliseconds on the device between two recorded and completed events.
  virtual absl::StatusOr<double> MillisecondsSince(Event& begin) = 0;
};

// A function of a module. Lives as long as its module.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  virtual const std::string& name() const = 0;
};

// Device code of one pack, loaded. Its kernels must not be under way when it goes.
class Module {
 public:
  virtual ~Module() = default;
  // NOT_FOUND for a name that the image does not have. Blocks; never called during a run. The same
  // name yields the same kernel.
  virtual absl::StatusOr<DeviceKernel*> Find(const std::string& name) = 0;
};

// What a launch moves and computes, as its op says it (mk_launch); what a planning device adds up.
struct LaunchWork {
  uint64_t bytes = 0;
  uint64_t flops = 0;
  uint64_t tensor_flops = 0;
};

struct LaunchDims {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  LaunchWork work = {};
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceFacts& facts() const = 0;

  // `size_bytes` of zeroed memory. RESOURCE_EXHAUSTED with the size, what is in use and the budget,
  // when it does not fit. Blocks; never called during a run.
  virtual absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(uint64_t size_bytes) = 0;
  virtual uint64_t in_use_bytes() const = 0;  // what is taken from the system
  // What the system could still give now: MemAvailable where memory is the CPU's, else what the
  // driver calls free. 0 where it cannot be read.
  virtual uint64_t free_bytes() const = 0;

  virtual absl::StatusOr<std::unique_ptr<Stream>> NewStream() = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> NewEvent() {
    return absl::UnimplementedError("no events here");
  }

  // In the order of `stream`. On a device whose memory the host can address, a memcpy. Elsewhere
  // `host` may be reused at once after CopyToDevice, and is filled after CopyToHost when
  // Synchronize has returned OK: it must live until then.
  virtual absl::Status CopyToDevice(Stream& stream, void* device, const void* host,
                                    uint64_t size_bytes) = 0;
  virtual absl::Status CopyToHost(Stream& stream, void* host, const void* device,
                                  uint64_t size_bytes) = 0;

  // Device code from one image; LoadImages of core/device/images.h chooses among several.
  // UNIMPLEMENTED on devices that run CPU twins; INVALID_ARGUMENT with the driver's log for an
  // image it does not take. Blocks (PTX is compiled here).
  virtual absl::StatusOr<std::unique_ptr<Module>> LoadModule(const mk_kernel_image& image) = 0;
  // Starts a kernel with one parameter struct by value; `params` is read before it returns. Does
  // not wait. INTERNAL naming the kernel, the value and the bound for dims that the kernel or the
  // device does not allow. An error of the kernel itself comes from a later call.
  virtual absl::Status Launch(Stream& stream, DeviceKernel& kernel, const LaunchDims& dims,
                              const void* params, uint64_t params_size_bytes) = 0;

  // UNAVAILABLE naming the error after which nothing works here any more: the process has to end.
  virtual absl::Status lost() const { return absl::OkStatus(); }

  // Whether the device answers now: what readiness and the watchdog ask. Runs something tiny on it
  // and checks the result.
  virtual absl::Status Canary() = 0;
};

// The CPU as a device. `budget_bytes` 0: nine tenths of MemAvailable at the time of the call.
absl::StatusOr<std::unique_ptr<Device>> NewCpuDevice(uint64_t budget_bytes);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_DEVICE_H_
