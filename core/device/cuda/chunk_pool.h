// Device memory in plain allocations of at most 512 MB, cut into buffers.
//
// Chunks are taken when a buffer needs one and given back when their last buffer goes: on a board
// the GPU's memory is the CPU's, so what no pack uses belongs to the system, and an unload can be
// proven. Larger buffers have a chunk of their own; small ones share.
#ifndef MERGEKERNEL_CORE_DEVICE_CUDA_CHUNK_POOL_H_
#define MERGEKERNEL_CORE_DEVICE_CUDA_CHUNK_POOL_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/device/cuda/context.h"

namespace mk {

// NvMap on Jetson refuses single allocations from about 1 GB on (briefs: L4T 36.4.7); half of that
// leaves room for what else is in the way.
inline constexpr uint64_t kMostChunkBytes = uint64_t{512} << 20;
inline constexpr uint64_t kSharedChunkBytes = uint64_t{32} << 20;  // for buffers below half of it
inline constexpr uint64_t kDeviceAlign = 256;  // what cuMemAlloc promises, kept for every buffer

// Any thread.
class ChunkPool {
 public:
  struct Chunk;
  struct Piece {
    Chunk* chunk = nullptr;
    cu::DevicePtr address = 0;
    uint64_t size_bytes = 0;  // as asked
  };

  // `available` says what the system can still give, or 0 where nobody knows: asked before each
  // chunk, since a board does not refuse but kills.
  ChunkPool(CudaContext& context, uint64_t budget_bytes, std::function<uint64_t()> available)
      : context_(context), budget_bytes_(budget_bytes), available_(std::move(available)) {}
  ~ChunkPool();  // REQUIRES that no piece is out

  // RESOURCE_EXHAUSTED with asked, in use and the bound that is in the way.
  absl::StatusOr<Piece> Take(uint64_t size_bytes) MK_EXCLUDES(mutex_);
  // REQUIRES that no work on it is under way.
  void GiveBack(const Piece& piece) MK_EXCLUDES(mutex_);
  uint64_t taken_bytes() const MK_EXCLUDES(mutex_);  // of the driver

 private:
  absl::StatusOr<Chunk*> NewChunk(uint64_t rounded) MK_REQUIRES(mutex_);

  CudaContext& context_;
  const uint64_t budget_bytes_;
  const std::function<uint64_t()> available_;
  mutable Mutex mutex_;
  std::list<Chunk> chunks_ MK_GUARDED_BY(mutex_);
  uint64_t taken_bytes_ MK_GUARDED_BY(mutex_) = 0;
};

struct ChunkPool::Chunk {
  cu::DevicePtr address = 0;
  uint64_t size_bytes = 0;
  std::map<uint64_t, uint64_t> free;  // offset -> size, never two that touch
  std::list<Chunk>::iterator self;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_CUDA_CHUNK_POOL_H_
