// How requests reach a generation's lanes, as the loader sees it. The scheduler (core/sched)
// implements it; the loader only makes one per generation, and ends it before it unloads the pack.
#ifndef MERGEKERNEL_CORE_LOADER_EXECUTOR_H_
#define MERGEKERNEL_CORE_LOADER_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/run/request.h"
#include "core/run/run_model.h"

namespace mk {

class Generation;

// Clock::NowNs at each step; 0 where a request did not get there.
struct RequestTimes {
  int64_t received_ns = 0;  // the caller's: when the request was whole
  int64_t queued_ns = 0;
  int64_t started_ns = 0;   // a lane took it
  int64_t finished_ns = 0;  // the pack returned
};

// One request on its way. Owned by one side at a time: the submitter, the executor, then the
// completion.
struct Job {
  InferRequest request;  // validated against the generation's signature
  // Shared with the submitter, which sets `cancelled` from any thread at any time.
  std::shared_ptr<StopSignal> stop;
  uint64_t charged_bytes = 0;  // what the queue counts for it: its inputs' bytes
  RequestTimes times;
  // Called exactly once, on a lane's thread, a submitter's (a refusal at submit), or the thread
  // that shuts down. Must not block. The job is destroyed after it returns.
  std::function<void(Job& job, absl::StatusOr<InferResponse> result)> done;
};

class Executor {
 public:
  virtual ~Executor() = default;  // REQUIRES Stop() was called

  // Takes the job, or completes it at once with UNAVAILABLE (queue full; the message names the
  // limit), RESOURCE_EXHAUSTED (larger than the byte limit can ever take), DEADLINE_EXCEEDED or
  // CANCELLED. Any thread; does not block.
  virtual void Submit(std::unique_ptr<Job> job) = 0;

  // Ends the lanes: refuses new jobs, completes queued ones with UNAVAILABLE, waits for the running
  // ones and joins the threads. Blocks; idempotent; not from a lane's thread.
  virtual void Stop() = 0;

  virtual uint64_t queued() const = 0;
  virtual uint64_t running() const = 0;
};

// Makes the executor of a generation that is about to serve; called on the loader's thread. Takes
// its scratch here.
using ExecutorFactory =
    std::function<absl::StatusOr<std::unique_ptr<Executor>>(Generation& generation)>;

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_EXECUTOR_H_
