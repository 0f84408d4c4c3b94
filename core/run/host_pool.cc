#include "core/run/host_pool.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"

namespace mk {
namespace {

constexpr uint64_t kAlign = 64;

// Sizes are rounded up to a power of two with four steps between, so that blocks are reused by near
// sizes at a waste of a quarter at most.
uint64_t SizeClass(uint64_t size) {
  uint64_t base = 4096;
  while (base * 2 < size) base *= 2;
  if (size <= base) return base;
  const uint64_t step = base / 4;
  return (size + step - 1) / step * step;
}

}  // namespace

struct HostBlock::State {
  State(uint64_t limit, uint64_t cache) : limit_bytes(limit), cache_limit_bytes(cache) {}
  ~State() {
    for (auto& [size, blocks] : cached) {
      for (void* block : blocks) std::free(block);
    }
  }

  void* Take(uint64_t size) MK_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (size > limit_bytes || in_use_bytes > limit_bytes - size) return nullptr;
    auto found = cached.find(size);
    void* data = nullptr;
    if (found != cached.end() && !found->second.empty()) {
      data = found->second.back();
      found->second.pop_back();
      cached_bytes -= size;
    } else {
      data = std::aligned_alloc(kAlign, size);
    }
    if (data != nullptr) in_use_bytes += size;
    return data;
  }

  void GiveBack(void* data, uint64_t size) MK_EXCLUDES(mutex) {
    {
      MutexLock lock(mutex);
      in_use_bytes -= size;
      if (cached_bytes + size <= cache_limit_bytes) {
        cached[size].push_back(data);
        cached_bytes += size;
        return;
      }
    }
    std::free(data);
  }

  const uint64_t limit_bytes;
  const uint64_t cache_limit_bytes;
  Mutex mutex;
  uint64_t in_use_bytes MK_GUARDED_BY(mutex) = 0;
  uint64_t cached_bytes MK_GUARDED_BY(mutex) = 0;
  std::map<uint64_t, std::vector<void*>> cached MK_GUARDED_BY(mutex);
};

HostBlock::HostBlock(HostBlock&& other) noexcept { *this = std::move(other); }

HostBlock& HostBlock::operator=(HostBlock&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

HostBlock::~HostBlock() {
  if (state_ != nullptr) state_->GiveBack(data_, SizeClass(size_));
}

HostPool::HostPool(uint64_t limit_bytes, uint64_t cache_bytes)
    : state_(std::make_shared<HostBlock::State>(limit_bytes, cache_bytes)) {}

HostPool::~HostPool() = default;

absl::StatusOr<HostBlock> HostPool::Allocate(uint64_t size_bytes) {
  HostBlock block;
  if (size_bytes == 0) return block;
  // Past 2^62 a size class would not fit into 64 bits.
  const uint64_t most = std::min(state_->limit_bytes, uint64_t{1} << 62);
  if (size_bytes <= most) block.data_ = state_->Take(SizeClass(size_bytes));
  if (block.data_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("host memory for tensors: ", size_bytes,
                                                     " bytes asked with ", in_use_bytes(), " of ",
                                                     state_->limit_bytes, " in use"));
  }
  block.state_ = state_;
  block.size_ = size_bytes;
  return block;
}

uint64_t HostPool::in_use_bytes() const {
  MutexLock lock(state_->mutex);
  return state_->in_use_bytes;
}

uint64_t HostPool::limit_bytes() const { return state_->limit_bytes; }

}  // namespace mk
