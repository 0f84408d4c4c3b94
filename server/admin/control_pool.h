// Threads for what may take long (load, unload, index), so that no thread of gRPC ever waits for a
// model.
#ifndef MERGEKERNEL_SERVER_ADMIN_CONTROL_POOL_H_
#define MERGEKERNEL_SERVER_ADMIN_CONTROL_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace mk {

// Any thread.
class ControlPool {
 public:
  explicit ControlPool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
  }
  ~ControlPool() { Stop(); }

  // False when too many wait already (the caller answers UNAVAILABLE), or after Stop.
  bool Run(std::function<void()> task) MK_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (ending_ || tasks_.size() >= kMaxWaiting) return false;
      tasks_.push_back(std::move(task));
    }
    changed_.NotifyOne();
    return true;
  }

  // Runs what waits, then ends. Blocks; idempotent.
  void Stop() MK_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      ending_ = true;
    }
    changed_.NotifyAll();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  static constexpr size_t kMaxWaiting = 256;

  void Loop() MK_EXCLUDES(mutex_) {
    mutex_.Lock();
    for (;;) {
      if (tasks_.empty()) {
        if (ending_) break;
        changed_.Wait(mutex_);
        continue;
      }
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      mutex_.Unlock();
      task();
      mutex_.Lock();
    }
    mutex_.Unlock();
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ MK_GUARDED_BY(mutex_);
  bool ending_ MK_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_ADMIN_CONTROL_POOL_H_
