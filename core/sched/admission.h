// Whether a request may wait: pure decisions over counts and bytes, and the count over all packs.
#ifndef MERGEKERNEL_CORE_SCHED_ADMISSION_H_
#define MERGEKERNEL_CORE_SCHED_ADMISSION_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"

namespace mk {

struct QueueLimits {
  uint64_t max_requests = 256;      // waiting, not counting those that run
  uint64_t max_bytes = 256u << 20;  // of inputs, waiting
};

struct QueueLoad {
  uint64_t requests = 0;
  uint64_t bytes = 0;
};

// OK; UNAVAILABLE "Exceeds maximum queue size: ..." with both numbers; RESOURCE_EXHAUSTED when
// `request_bytes` alone passes max_bytes.
absl::Status Admit(const QueueLimits& limits, const QueueLoad& load, uint64_t request_bytes);

// The same over all packs. Any thread, lock-free.
class GlobalAdmission {
 public:
  explicit GlobalAdmission(QueueLimits limits) : limits_(limits) {}
  absl::Status Enter(uint64_t request_bytes);  // charges on OK
  void Leave(uint64_t request_bytes);
  QueueLoad load() const { return {requests_.load(), bytes_.load()}; }

 private:
  const QueueLimits limits_;
  std::atomic<uint64_t> requests_{0};
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_SCHED_ADMISSION_H_
