// std::mutex with clang's thread-safety attributes. Not absl::Mutex: the distribution's is not
// instrumented, and ThreadSanitizer reports false races in it (docs/design/build.md).
#ifndef MERGEKERNEL_CORE_BASE_MUTEX_H_
#define MERGEKERNEL_CORE_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define MK_TSA(x) __attribute__((x))
#else
#define MK_TSA(x)
#endif
#define MK_GUARDED_BY(x) MK_TSA(guarded_by(x))
#define MK_REQUIRES(...) MK_TSA(requires_capability(__VA_ARGS__))
#define MK_EXCLUDES(...) MK_TSA(locks_excluded(__VA_ARGS__))

namespace mk {

class MK_TSA(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() MK_TSA(acquire_capability()) { mutex_.lock(); }
  void Unlock() MK_TSA(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class MK_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MK_TSA(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() MK_TSA(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable over mk::Mutex. Waits may wake spuriously: loop on the condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) MK_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // Returns false on timeout.
  bool WaitFor(Mutex& mutex, std::chrono::nanoseconds timeout) MK_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool notified = cv_.wait_until(lock, std::chrono::steady_clock::now() + timeout) ==
                          std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_MUTEX_H_
