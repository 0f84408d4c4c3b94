// Scratch of one lane: a bump arena with nested scopes over one device buffer, taken once.
// Addresses repeat from run to run; nothing is allocated during a run. What is "live" in the
// account is what the bump pointers cover, and its peak is the run's true scratch need.
//
// Scopes bump from the front. What must outlive them all until the run ends (inputs and outputs, on
// a device with memory of its own) bumps from the end.
#ifndef MERGEKERNEL_CORE_DEVICE_ARENA_H_
#define MERGEKERNEL_CORE_DEVICE_ARENA_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/device.h"
#include "core/device/memory_account.h"

namespace mk {

// One thread at a time.
class Arena {
 public:
  // Takes `capacity_bytes` of `device` now. `account` outlives the arena. The buffer's whole
  // capacity is not charged: what is bumped is, so that declared, live and peak speak of use.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(Device& device, MemoryAccount& account,
                                                       uint64_t capacity_bytes);
  ~Arena();

  // Not zeroed. In memory that the host can address 64-byte aligned, and under AddressSanitizer
  // with a poisoned gap behind each block; elsewhere 256-byte aligned. A size of 0 yields a
  // distinct, unusable address. RESOURCE_EXHAUSTED with asked, used and capacity.
  absl::StatusOr<void*> Allocate(uint64_t size_bytes);
  uint64_t Mark() const;
  // Gives back all that was allocated after `mark` (a count of allocations). A mark from the future
  // is ignored (a pack's mistake, not ours).
  void Release(uint64_t mark);

  // From the end of the buffer: stays until ReleaseEnd to a lower mark, or Reset.
  absl::StatusOr<void*> AllocateEnd(uint64_t size_bytes);
  uint64_t EndMark() const { return end_bytes_; }  // bytes taken from the end
  void ReleaseEnd(uint64_t mark);

  void Reset() {
    Release(0);
    ReleaseEnd(0);
  }

  uint64_t capacity_bytes() const;
  uint64_t high_water_bytes() const;  // the most ever in use

 private:
  Arena(std::unique_ptr<DeviceBuffer> buffer, MemoryAccount& account, bool host);
  absl::Status Refuse(uint64_t size_bytes) const;
  void Poison(uint64_t offset, uint64_t size_bytes);
  void Unpoison(uint64_t offset, uint64_t size_bytes);

  // What was in use after an allocation.
  struct Level {
    uint64_t used_bytes = 0;     // of the buffer
    uint64_t charged_bytes = 0;  // the same without the gaps of a sanitized build
  };

  std::unique_ptr<DeviceBuffer> buffer_;
  MemoryAccount& account_;
  const bool host_;  // the host can address the buffer
  const uint64_t align_;
  const uint64_t gap_;
  uint64_t declared_bytes_ = 0;
  uint64_t used_bytes_ = 0;  // from the front
  uint64_t end_bytes_ = 0;   // from the end; without gaps
  uint64_t charged_bytes_ = 0;
  uint64_t high_water_bytes_ = 0;
  std::vector<Level> marks_;  // one per allocation; grows to the deepest run and stays
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_ARENA_H_
