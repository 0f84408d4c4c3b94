#include "core/device/cuda/stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/status_macros.h"

namespace mk {

absl::StatusOr<std::unique_ptr<CudaEvent>> CudaEvent::Create(CudaContext& context, unsigned flags) {
  cu::Event event = nullptr;
  MK_RETURN_IF_ERROR(MK_CUDA(context, EventCreate, &event, flags));
  return std::unique_ptr<CudaEvent>(new CudaEvent(context, event));
}

absl::Status CudaEvent::Record(Stream& stream) {
  return RecordOn(static_cast<CudaStream&>(stream).handle());
}

absl::StatusOr<double> CudaEvent::MillisecondsSince(Event& begin) {
  float milliseconds = 0;
  MK_RETURN_IF_ERROR(MK_CUDA(context_, EventElapsedTime, &milliseconds,
                             static_cast<CudaEvent&>(begin).event_, event_));
  return milliseconds;
}

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create(CudaContext& context,
                                                               uint64_t slot_bytes) {
  // What the destructor finds, it gives back: so each step is stored at once.
  auto stream = std::unique_ptr<CudaStream>(new CudaStream(context, slot_bytes));
  // Non-blocking: nothing of ours runs on the default stream, and whoever does must not stop us.
  MK_RETURN_IF_ERROR(MK_CUDA(context, StreamCreate, &stream->stream_, cu::kStreamNonBlocking));
  MK_RETURN_IF_ERROR(MK_CUDA(context, MemHostAlloc, &stream->pinned_,
                             static_cast<size_t>(slot_bytes * kSlots), cu::kHostAllocDefault));
  for (size_t i = 0; i < kSlots; ++i) {
    Slot& slot = stream->slots_[i];
    slot.pinned = static_cast<char*>(stream->pinned_) + i * slot_bytes;
    MK_ASSIGN_OR_RETURN(slot.done, CudaEvent::Create(context, cu::kEventDisableTiming));
  }
  return stream;
}

CudaStream::~CudaStream() {
  Forget();
  cu::Graph dropped = nullptr;
  if (capturing_ && TryEndCapture(&dropped).ok()) MK_CUDA_RELEASE(context_, GraphDestroy, dropped);
  // Work may still read the pinned slots and the caller's buffers.
  if (stream_ != nullptr) MK_CUDA_RELEASE(context_, StreamSynchronize, stream_);
  for (Slot& slot : slots_) slot.done.reset();
  if (pinned_ != nullptr) MK_CUDA_RELEASE(context_, MemFreeHost, pinned_);
  if (stream_ != nullptr) MK_CUDA_RELEASE(context_, StreamDestroy, stream_);
}

void CudaStream::Deliver(Slot& slot) {
  if (slot.host != nullptr) std::memcpy(slot.host, slot.pinned, slot.size_bytes);
  slot.busy = false;
  slot.host = nullptr;
}

void CudaStream::Forget() {
  for (Slot& slot : slots_) slot.host = nullptr;
}

absl::Status CudaStream::Synchronize() {
  const absl::Status status = MK_CUDA(context_, StreamSynchronize, stream_);
  if (!status.ok()) {
    Forget();
    return status;
  }
  // In the order of the copies: two to one place leave the later one there.
  for (size_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots_[(next_ + i) % kSlots];
    if (slot.busy) Deliver(slot);
  }
  return absl::OkStatus();
}

absl::StatusOr<CudaStream::Slot*> CudaStream::NextSlot() {
  Slot& slot = slots_[next_];
  if (slot.busy) {
    const absl::Status status = slot.done->Synchronize();
    if (!status.ok()) {
      Forget();
      return status;
    }
    Deliver(slot);
  }
  next_ = (next_ + 1) % kSlots;
  return &slot;
}

absl::Status CudaStream::CopyToDevice(cu::DevicePtr device, const void* host, uint64_t size_bytes) {
  for (uint64_t at = 0; at < size_bytes;) {
    const uint64_t piece = std::min(slot_bytes_, size_bytes - at);
    MK_ASSIGN_OR_RETURN(Slot * slot, NextSlot());
    std::memcpy(slot->pinned, static_cast<const char*>(host) + at, piece);
    MK_RETURN_IF_ERROR(MK_CUDA(context_, MemcpyHtoDAsync, device + at,
                               static_cast<const void*>(slot->pinned), static_cast<size_t>(piece),
                               stream_));
    slot->busy = true;
    const absl::Status recorded = slot->done->RecordOn(stream_);
    if (!recorded.ok()) {
      // No event tells when the slot is free: wait here.
      Synchronize().IgnoreError();
      return recorded;
    }
    at += piece;
  }
  return absl::OkStatus();
}

absl::Status CudaStream::CopyToHost(void* host, cu::DevicePtr device, uint64_t size_bytes) {
  absl::Status status = Fetch(host, device, size_bytes);
  if (!status.ok()) Forget();  // the caller may not wait for it, and its memory may go
  return status;
}

absl::Status CudaStream::Fetch(void* host, cu::DevicePtr device, uint64_t size_bytes) {
  for (uint64_t at = 0; at < size_bytes;) {
    const uint64_t piece = std::min(slot_bytes_, size_bytes - at);
    MK_ASSIGN_OR_RETURN(Slot * slot, NextSlot());
    MK_RETURN_IF_ERROR(MK_CUDA(context_, MemcpyDtoHAsync, static_cast<void*>(slot->pinned),
                               device + at, static_cast<size_t>(piece), stream_));
    slot->busy = true;
    const absl::Status recorded = slot->done->RecordOn(stream_);
    if (!recorded.ok()) {
      Synchronize().IgnoreError();
      return recorded;
    }
    slot->host = static_cast<char*>(host) + at;
    slot->size_bytes = piece;
    at += piece;
  }
  return absl::OkStatus();
}

// Thread-local mode: other threads go on allocating and waiting while this one records.
absl::Status CudaStream::BeginCapture() {
  MK_RETURN_IF_ERROR(MK_CUDA(context_, StreamBeginCapture, stream_, cu::kCaptureThreadLocal));
  capturing_ = true;
  return absl::OkStatus();
}

absl::Status CudaStream::TryEndCapture(cu::Graph* graph) {
  const absl::Status status = MK_CUDA(context_, StreamEndCapture, stream_, graph);
  // A broken capture has ended with its error; after any other failure it is open still.
  capturing_ = !status.ok() && !absl::IsFailedPrecondition(status);
  if (status.ok() || *graph == nullptr) return status;
  // One that went wrong may still leave a graph behind.
  MK_CUDA_RELEASE(context_, GraphDestroy, std::exchange(*graph, nullptr));
  return status;
}

absl::StatusOr<std::unique_ptr<Graph>> CudaStream::EndCapture() {
  cu::Graph graph = nullptr;
  const absl::Status ended = TryEndCapture(&graph);
  if (!ended.ok()) {
    // Left open, it would fail all that comes after it on this stream.
    cu::Graph dropped = nullptr;
    if (capturing_ && TryEndCapture(&dropped).ok()) {
      MK_CUDA_RELEASE(context_, GraphDestroy, dropped);
    }
    return ended;
  }
  cu::GraphExec exec = nullptr;
  const absl::Status made = MK_CUDA(context_, GraphInstantiate, &exec, graph, 0ULL);
  MK_CUDA_RELEASE(context_, GraphDestroy, graph);  // the executable holds all it needs
  if (!made.ok()) return made;
  return std::unique_ptr<Graph>(std::make_unique<CudaGraph>(context_, exec));
}

absl::Status CudaStream::LaunchGraph(Graph& graph) {
  return MK_CUDA(context_, GraphLaunch, static_cast<CudaGraph&>(graph).exec(), stream_);
}

}  // namespace mk
