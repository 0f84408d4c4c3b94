// The host's worker threads, shared by all lanes and packs.
#ifndef MERGEKERNEL_CORE_DEVICE_THREAD_POOL_H_
#define MERGEKERNEL_CORE_DEVICE_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/base/mutex.h"

namespace mk {

// Any thread, several callers at once. The workers sleep when there is nothing to do.
class ThreadPool {
 public:
  using Body = void (*)(void* arg, int64_t begin, int64_t end);

  // `threads` in all, the caller's included, so `threads` - 1 workers; 0: one per allowed core.
  explicit ThreadPool(int threads);
  ~ThreadPool();

  // See mk_parallel_service. A call from inside a body runs inline. Blocks until all of [0, count)
  // is done.
  void ParallelFor(int64_t count, int64_t grain, Body body, void* arg);
  int threads() const { return static_cast<int>(workers_.size()) + 1; }

 private:
  // One call under way; lives on its caller's stack.
  struct Call {
    Body body;
    void* arg;
    int64_t count;
    int64_t chunk;  // indices per range; the last range may be shorter
    int64_t ranges;
    std::atomic<int64_t> next{0};  // the first range not handed out
    int helpers = 0;               // workers inside; guarded by the pool's mutex
  };
  static void Work(Call& call);
  void WorkerLoop() MK_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar work_;  // a call was added, or the pool ends
  CondVar done_;  // a worker left a call
  std::vector<Call*> calls_ MK_GUARDED_BY(mutex_);
  bool ending_ MK_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_THREAD_POOL_H_
