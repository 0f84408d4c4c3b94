#include "core/sched/admission.h"

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mk {

absl::Status Admit(const QueueLimits& limits, const QueueLoad& load, uint64_t request_bytes) {
  if (request_bytes > limits.max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("request of ", request_bytes,
                                                     " input bytes, more than the ",
                                                     limits.max_bytes, " that may wait"));
  }
  if (load.requests >= limits.max_requests) {
    return absl::UnavailableError(absl::StrCat("Exceeds maximum queue size: ", load.requests,
                                               " requests wait, the limit is ",
                                               limits.max_requests));
  }
  // Written so that nothing can overflow: `load.bytes` may stand above the limit for a moment.
  if (load.bytes > limits.max_bytes - request_bytes) {
    return absl::UnavailableError(absl::StrCat(
        "Exceeds maximum queue size: ", load.bytes, " bytes wait, with this request's ",
        request_bytes, " the limit of ", limits.max_bytes, " would be passed"));
  }
  return absl::OkStatus();
}

absl::Status GlobalAdmission::Enter(uint64_t request_bytes) {
  // Each counter is raised only from a value that Admit allowed, so neither limit is ever passed.
  // Relaxed: the counters guard nothing but themselves.
  uint64_t requests = requests_.load(std::memory_order_relaxed);
  do {
    const absl::Status status = Admit(limits_, {requests, 0}, request_bytes);
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat("all packs: ", status.message()));
  } while (!requests_.compare_exchange_weak(requests, requests + 1, std::memory_order_relaxed));
  uint64_t bytes = bytes_.load(std::memory_order_relaxed);
  do {
    const absl::Status status = Admit(limits_, {0, bytes}, request_bytes);
    if (!status.ok()) {
      requests_.fetch_sub(1, std::memory_order_relaxed);
      return absl::Status(status.code(), absl::StrCat("all packs: ", status.message()));
    }
  } while (!bytes_.compare_exchange_weak(bytes, bytes + request_bytes, std::memory_order_relaxed));
  return absl::OkStatus();
}

void GlobalAdmission::Leave(uint64_t request_bytes) {
  requests_.fetch_sub(1, std::memory_order_relaxed);
  bytes_.fetch_sub(request_bytes, std::memory_order_relaxed);
}

}  // namespace mk
