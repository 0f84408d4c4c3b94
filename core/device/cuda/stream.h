// A CUDA stream with its own pinned staging: copies from and to ordinary host memory that really
// run beside the host, in pieces through a ring of a few slots.
#ifndef MERGEKERNEL_CORE_DEVICE_CUDA_STREAM_H_
#define MERGEKERNEL_CORE_DEVICE_CUDA_STREAM_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device/cuda/context.h"
#include "core/device/device.h"

namespace mk {

// An owned cu::Event.
class CudaEvent : public Event {
 public:
  static absl::StatusOr<std::unique_ptr<CudaEvent>> Create(CudaContext& context, unsigned flags);
  ~CudaEvent() override { MK_CUDA_RELEASE(context_, EventDestroy, event_); }

  absl::Status Record(Stream& stream) override;
  absl::Status RecordOn(cu::Stream stream) {
    return MK_CUDA(context_, EventRecord, event_, stream);
  }
  absl::Status Synchronize() override { return MK_CUDA(context_, EventSynchronize, event_); }
  absl::StatusOr<double> MillisecondsSince(Event& begin) override;

 private:
  CudaEvent(CudaContext& context, cu::Event event) : context_(context), event_(event) {}
  CudaContext& context_;
  const cu::Event event_;
};

// An instantiated graph.
class CudaGraph : public Graph {
 public:
  CudaGraph(CudaContext& context, cu::GraphExec exec) : context_(context), exec_(exec) {}
  ~CudaGraph() override { MK_CUDA_RELEASE(context_, GraphExecDestroy, exec_); }
  cu::GraphExec exec() const { return exec_; }

 private:
  CudaContext& context_;
  const cu::GraphExec exec_;
};

// One thread at a time.
class CudaStream : public Stream {
 public:
  // Takes kSlots * `slot_bytes` of pinned host memory.
  static absl::StatusOr<std::unique_ptr<CudaStream>> Create(CudaContext& context,
                                                            uint64_t slot_bytes);
  ~CudaStream() override;

  absl::Status Synchronize() override;
  absl::Status BeginCapture() override;
  absl::StatusOr<std::unique_ptr<Graph>> EndCapture() override;
  absl::Status LaunchGraph(Graph& graph) override;

  // See Device. After a failed CopyToHost none that was promised before is delivered either.
  absl::Status CopyToDevice(cu::DevicePtr device, const void* host, uint64_t size_bytes);
  absl::Status CopyToHost(void* host, cu::DevicePtr device, uint64_t size_bytes);

  cu::Stream handle() const { return stream_; }

 private:
  static constexpr size_t kSlots = 4;
  // One piece of a copy: its pinned bytes, and what is to be done when its event has come.
  struct Slot {
    char* pinned = nullptr;
    std::unique_ptr<CudaEvent> done;
    bool busy = false;
    void* host = nullptr;  // where the bytes go; null for a copy to the device
    uint64_t size_bytes = 0;
  };

  explicit CudaStream(CudaContext& context, uint64_t slot_bytes)
      : context_(context), slot_bytes_(slot_bytes) {}
  // The next slot of the ring, empty. Waits for what it holds.
  absl::StatusOr<Slot*> NextSlot();
  absl::Status TryEndCapture(cu::Graph* graph);
  absl::Status Fetch(void* host, cu::DevicePtr device, uint64_t size_bytes);
  static void Deliver(Slot& slot);  // REQUIRES its event has come
  void Forget();                    // what was promised to the host, after a failure

  CudaContext& context_;
  const uint64_t slot_bytes_;
  cu::Stream stream_ = nullptr;
  void* pinned_ = nullptr;
  std::array<Slot, kSlots> slots_;
  size_t next_ = 0;
  bool capturing_ = false;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_CUDA_STREAM_H_
