// The fake driver's memory: device allocations, pinned host memory, copies.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "core/device/testing/fake_cuda_state.h"

namespace mk {
namespace fake {

char* Memory(State& s, uint64_t address, uint64_t size) {
  auto found = s.allocations.upper_bound(address);
  if (found == s.allocations.begin()) return nullptr;
  --found;
  const uint64_t offset = address - found->first;
  if (offset > found->second.size || size > found->second.size - offset) return nullptr;
  return found->second.bytes.get() + offset;
}

char* PinnedBlock(State& s, const void* host) {
  auto* at = static_cast<char*>(const_cast<void*>(host));
  auto found = s.pinned.upper_bound(at);
  if (found == s.pinned.begin()) return nullptr;
  --found;
  return at < found->first + found->second ? found->first : nullptr;
}

}  // namespace fake
}  // namespace mk

using namespace mk;        // NOLINT
using namespace mk::fake;  // NOLINT
using mk::cu::Result;

namespace {

// The stream's queue, or its capture.
void Add(StreamObject& stream, Op op) {
  if (stream.capturing) {
    stream.captured.push_back(std::move(op));
  } else {
    stream.pending.push_back(std::move(op));
  }
}

StreamObject* StreamFor(State& s, cu::Stream stream) {
  if (stream == nullptr) {
    Violation("the default stream: nothing of ours runs there");
    return nullptr;
  }
  return FindHere(s.streams, stream, "stream");
}

}  // namespace

FAKE Result cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return Enter("cuMemGetInfo_v2", kContext, [&](State& s) {
    *total_bytes = s.machine.memory_bytes;
    *free_bytes = s.machine.memory_bytes - s.allocated_bytes;
    return cu::kSuccess;
  });
}

FAKE Result cuMemAlloc_v2(cu::DevicePtr* address, size_t size) {
  return Enter("cuMemAlloc_v2", kContext | kNoCapture, [&](State& s) -> Result {
    if (size == 0) return Violation("size 0"), cu::kInvalidValue;
    if (size > (uint64_t{512} << 20)) Violation("more than 512 MB in one allocation");
    if (size > s.machine.memory_bytes - s.allocated_bytes) return cu::kOutOfMemory;
    Allocation allocation;
    allocation.size = size;
    allocation.bytes.reset(new char[size]);
    // What nobody wrote is no zero.
    std::memset(allocation.bytes.get(), 0xCD, std::min<size_t>(size, 1 << 20));
    allocation.context = Current();
    s.next_address += (size + 0xFFFFF) / 0x100000 * 0x100000 + 0x100000;
    *address = s.next_address;
    s.allocated_bytes += size;
    s.allocations[*address] = std::move(allocation);
    return cu::kSuccess;
  });
}

FAKE Result cuMemFree_v2(cu::DevicePtr address) {
  return Enter("cuMemFree_v2", kContext | kNoCapture, [&](State& s) -> Result {
    const auto found = s.allocations.find(address);
    if (found == s.allocations.end())
      return Violation("no allocation begins here"), cu::kInvalidValue;
    if (found->second.context != Current())
      return Violation("of another context"), cu::kInvalidValue;
    // As the driver does: what is under way ends first.
    for (auto& [handle, stream] : s.streams) {
      const Result result = RunAll(s, stream);
      if (result != cu::kSuccess) return result;
    }
    s.allocated_bytes -= found->second.size;
    s.allocations.erase(found);
    return cu::kSuccess;
  });
}

FAKE Result cuMemHostAlloc(void** address, size_t size, unsigned flags) {
  return Enter("cuMemHostAlloc", kContext | kNoCapture, [&](State& s) -> Result {
    if (size == 0 || flags != 0) return Violation("size 0, or flags"), cu::kInvalidValue;
    if (size > s.machine.pinned_bytes - s.pinned_bytes) return cu::kOutOfMemory;
    auto* block = static_cast<char*>(std::malloc(size));
    s.pinned[block] = size;
    s.pinned_bytes += size;
    *address = block;
    return cu::kSuccess;
  });
}

FAKE Result cuMemFreeHost(void* address) {
  return Enter("cuMemFreeHost", kContext | kNoCapture, [&](State& s) -> Result {
    const auto found = s.pinned.find(static_cast<char*>(address));
    if (found == s.pinned.end())
      return Violation("no pinned memory begins here"), cu::kInvalidValue;
    for (const auto& [handle, stream] : s.streams) {
      for (const Op& op : stream.pending) {
        if (op.pinned == found->first) Violation("a copy under way uses this memory");
      }
    }
    s.pinned_bytes -= found->second;
    std::free(found->first);
    s.pinned.erase(found);
    return cu::kSuccess;
  });
}

FAKE Result cuMemsetD8Async(cu::DevicePtr address, unsigned char value, size_t size,
                            cu::Stream stream) {
  return Enter("cuMemsetD8Async", kContext, [&](State& s) -> Result {
    StreamObject* found = StreamFor(s, stream);
    if (found == nullptr) return cu::kInvalidHandle;
    if (Memory(s, address, size) == nullptr) return Violation("range"), cu::kInvalidValue;
    Op op;
    op.run = [&s, address, value, size] {
      char* memory = Memory(s, address, size);
      if (memory == nullptr) return Violation("memory freed under a fill");
      std::memset(memory, value, size);
    };
    Add(*found, std::move(op));
    return cu::kSuccess;
  });
}

FAKE Result cuMemcpyHtoDAsync_v2(cu::DevicePtr to, const void* from, size_t size,
                                 cu::Stream stream) {
  return Enter("cuMemcpyHtoDAsync_v2", kContext, [&](State& s) -> Result {
    StreamObject* found = StreamFor(s, stream);
    if (found == nullptr) return cu::kInvalidHandle;
    if (size == 0 || Memory(s, to, size) == nullptr) return Violation("range"), cu::kInvalidValue;
    Op op;
    op.pinned = PinnedBlock(s, from);
    std::shared_ptr<std::string> taken;
    if (op.pinned == nullptr) {
      // The driver stages such memory at once.
      ++s.pageable_copies;
      taken = std::make_shared<std::string>(static_cast<const char*>(from), size);
    }
    op.run = [&s, to, from, size, taken] {
      char* memory = Memory(s, to, size);
      if (memory == nullptr) return Violation("memory freed under a copy");
      std::memcpy(memory, taken ? taken->data() : from, size);
    };
    Add(*found, std::move(op));
    return cu::kSuccess;
  });
}

FAKE Result cuMemcpyDtoHAsync_v2(void* to, cu::DevicePtr from, size_t size, cu::Stream stream) {
  return Enter("cuMemcpyDtoHAsync_v2", kContext, [&](State& s) -> Result {
    StreamObject* found = StreamFor(s, stream);
    if (found == nullptr) return cu::kInvalidHandle;
    if (size == 0 || Memory(s, from, size) == nullptr) return Violation("range"), cu::kInvalidValue;
    Op op;
    op.pinned = PinnedBlock(s, to);
    if (op.pinned == nullptr) ++s.pageable_copies;
    op.run = [&s, to, from, size] {
      char* memory = Memory(s, from, size);
      if (memory == nullptr) return Violation("memory freed under a copy");
      std::memcpy(to, memory, size);
    };
    const bool pageable = op.pinned == nullptr;
    Add(*found, std::move(op));
    return pageable && !found->capturing ? RunAll(s, *found) : cu::kSuccess;
  });
}
