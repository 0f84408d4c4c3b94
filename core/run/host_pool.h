// Bounded, reused host memory for outputs (and for inputs that must be made contiguous). Blocks
// live as long as the response is being written, so a slow reader holds a block of the pool and
// never a lane's scratch.
#ifndef MERGEKERNEL_CORE_RUN_HOST_POOL_H_
#define MERGEKERNEL_CORE_RUN_HOST_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace mk {

class HostPool;

// A block of a HostPool; gives itself back. Movable. Any thread, one at a time. The pool's state is
// shared by its blocks, so a block may outlive the HostPool object.
class HostBlock {
 public:
  HostBlock() = default;
  HostBlock(HostBlock&& other) noexcept;
  HostBlock& operator=(HostBlock&& other) noexcept;
  ~HostBlock();

  void* data() const { return data_; }
  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  friend class HostPool;
  struct State;
  std::shared_ptr<State> state_;
  void* data_ = nullptr;
  uint64_t size_ = 0;
};

// Any thread.
class HostPool {
 public:
  // `limit_bytes`: the most that all blocks in use take; `cache_bytes`: the most kept for reuse
  // beyond that.
  HostPool(uint64_t limit_bytes, uint64_t cache_bytes);
  ~HostPool();

  // 64-byte aligned, not zeroed. A size of 0 yields an empty block. RESOURCE_EXHAUSTED with asked,
  // in use and limit.
  absl::StatusOr<HostBlock> Allocate(uint64_t size_bytes);
  uint64_t in_use_bytes() const;
  uint64_t limit_bytes() const;

 private:
  std::shared_ptr<HostBlock::State> state_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_RUN_HOST_POOL_H_
