// A pack's way into the log: a pack that logs in every run must not fill a disk.
#ifndef MERGEKERNEL_CORE_LOADER_RATE_LIMITED_LOG_H_
#define MERGEKERNEL_CORE_LOADER_RATE_LIMITED_LOG_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/token_bucket.h"

namespace mk {

using LogLine = std::function<void(int level, const std::string& message)>;

// Passes 100 lines at once and 10 a second over time on to `log`, drops the rest, and says how many
// were dropped with the next line that passes. Any thread. `clock` outlives the result.
inline LogLine RateLimited(LogLine log, const Clock& clock) {
  struct State {
    Mutex mutex;
    TokenBucket bucket MK_GUARDED_BY(mutex) = TokenBucket(100, 10);
    uint64_t dropped MK_GUARDED_BY(mutex) = 0;
  };
  if (!log) return log;
  return [log = std::move(log), &clock, state = std::make_shared<State>()](
             int level, const std::string& message) {
    uint64_t dropped = 0;
    {
      MutexLock lock(state->mutex);
      if (!state->bucket.Take(clock.NowNs())) {
        ++state->dropped;
        return;
      }
      dropped = std::exchange(state->dropped, 0);
    }
    log(level, dropped == 0
                   ? message
                   : absl::StrCat(message, " (", dropped, " lines of this pack were dropped)"));
  };
}

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_RATE_LIMITED_LOG_H_
