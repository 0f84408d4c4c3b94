#include "core/device/thread_pool.h"

#include <pthread.h>

#include <algorithm>

#include "core/device/cpu_facts.h"

namespace mk {
namespace {

thread_local bool inside_body = false;

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const int total = threads > 0 ? threads : AllowedCores();
  for (int i = 1; i < total; ++i) {
    workers_.emplace_back([this] { WorkerLoop(); });
    pthread_setname_np(workers_.back().native_handle(), "mk-worker");
  }
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  work_.NotifyAll();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Work(Call& call) {
  inside_body = true;
  for (;;) {
    // Relaxed: the counter only hands out ranges; the results are published by the pool's mutex
    // when a worker leaves.
    const int64_t range = call.next.fetch_add(1, std::memory_order_relaxed);
    if (range >= call.ranges) break;
    const int64_t begin = range * call.chunk;
    call.body(call.arg, begin, begin + std::min(call.chunk, call.count - begin));
  }
  inside_body = false;
}

void ThreadPool::ParallelFor(int64_t count, int64_t grain, Body body, void* arg) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (inside_body || workers_.empty() || count <= grain) {
    body(arg, 0, count);
    return;
  }
  // Four ranges per thread even out unequal ones without many trips to the counter.
  const int64_t most_ranges = static_cast<int64_t>(threads()) * 4;
  const int64_t chunk = std::max(grain, (count - 1) / most_ranges + 1);
  Call call{body, arg, count, chunk, (count - 1) / chunk + 1};
  {
    MutexLock lock(mutex_);
    calls_.push_back(&call);
  }
  work_.NotifyAll();
  Work(call);
  MutexLock lock(mutex_);
  calls_.erase(std::find(calls_.begin(), calls_.end(), &call));
  while (call.helpers != 0) done_.Wait(mutex_);
}

void ThreadPool::WorkerLoop() {
  mutex_.Lock();
  for (;;) {
    Call* call = nullptr;
    for (Call* candidate : calls_) {
      if (candidate->next.load(std::memory_order_relaxed) < candidate->ranges) call = candidate;
    }
    if (call == nullptr) {
      if (ending_) break;
      work_.Wait(mutex_);
      continue;
    }
    ++call->helpers;
    mutex_.Unlock();
    Work(*call);
    mutex_.Lock();
    if (--call->helpers == 0) done_.NotifyAll();
  }
  mutex_.Unlock();
}

}  // namespace mk
