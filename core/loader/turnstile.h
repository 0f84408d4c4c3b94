// Lets operations on one pack through one at a time, in the order in which they came.
#ifndef MERGEKERNEL_CORE_LOADER_TURNSTILE_H_
#define MERGEKERNEL_CORE_LOADER_TURNSTILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/base/mutex.h"

namespace mk {

// Any thread.
class Turnstile {
 public:
  // An operation that waits or runs. Equal ones that wait at the same time share one result.
  struct Pass {
    std::string what;
    uint64_t ticket = 0;
    bool started = false;
    bool done = false;
    absl::Status result;
  };

  // Joins a waiting operation equal to `what` and returns its result when it is done; or waits for
  // its own turn and returns nothing: the caller runs the operation then, and ends it with Leave.
  std::optional<absl::Status> Enter(const std::string& what, std::shared_ptr<Pass>* pass)
      MK_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    // Only the newest may be joined: one behind it in the line would be overtaken otherwise.
    if (newest_ && !newest_->started && newest_->what == what) {
      const std::shared_ptr<Pass> joined = newest_;
      while (!joined->done) changed_.Wait(mutex_);
      return joined->result;
    }
    auto own = std::make_shared<Pass>();
    own->what = what;
    own->ticket = next_ticket_++;
    newest_ = own;
    while (now_serving_ != own->ticket) changed_.Wait(mutex_);
    own->started = true;
    *pass = own;
    return std::nullopt;
  }

  void Leave(Pass& pass, absl::Status result) MK_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      pass.done = true;
      pass.result = std::move(result);
      ++now_serving_;
    }
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  uint64_t next_ticket_ MK_GUARDED_BY(mutex_) = 0;
  uint64_t now_serving_ MK_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Pass> newest_ MK_GUARDED_BY(mutex_);
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_TURNSTILE_H_
