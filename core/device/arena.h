// Scratch of one lane: a bump arena with nested scopes over one device buffer, taken once.
// Addresses repeat from run to run; nothing is allocated during a run. What is "live" in the
// account is what the bump pointer covers, and its peak is the run's true scratch need.
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

  // 64-byte aligned, not zeroed; under AddressSanitizer a gap behind each block is poisoned. A size
  // of 0 yields a distinct, unusable address. RESOURCE_EXHAUSTED with asked, used and capacity.
  absl::StatusOr<void*> Allocate(uint64_t size_bytes);
  uint64_t Mark() const;
  // Gives back all that was allocated after `mark` (a count of allocations). A mark from the future
  // is ignored (a pack's mistake, not ours).
  void Release(uint64_t mark);
  void Reset() { Release(0); }

  uint64_t capacity_bytes() const;
  uint64_t high_water_bytes() const;  // the most ever in use

 private:
  Arena(std::unique_ptr<DeviceBuffer> buffer, MemoryAccount& account);

  // What was in use after an allocation.
  struct Level {
    uint64_t used_bytes = 0;     // of the buffer
    uint64_t charged_bytes = 0;  // the same without the gaps of a sanitized build
  };

  std::unique_ptr<DeviceBuffer> buffer_;
  MemoryAccount& account_;
  uint64_t declared_bytes_ = 0;
  uint64_t used_bytes_ = 0;
  uint64_t charged_bytes_ = 0;
  uint64_t high_water_bytes_ = 0;
  std::vector<Level> marks_;  // one per allocation; grows to the deepest run and stays
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_ARENA_H_
