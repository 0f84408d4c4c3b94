// The context of one GPU, through which every driver call of core/device/cuda goes: it makes the
// context current, turns results into statuses, and remembers the first error after which nothing
// works any more.
#ifndef MERGEKERNEL_CORE_DEVICE_CUDA_CONTEXT_H_
#define MERGEKERNEL_CORE_DEVICE_CUDA_CONTEXT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/device/cuda/driver.h"

namespace mk {

// Any thread. Outlives everything made in it.
class CudaContext {
 public:
  struct Hooks {
    // Once, on the thread that saw the first sticky error, from within the failing call: must not
    // block and must not call the device.
    std::function<void(const absl::Status&)> on_lost;
    // For what no caller can be told: a release that failed. 0 debug .. 3 error.
    std::function<void(int level, const std::string&)> log;
  };

  // Retains the primary context of device `ordinal`. FAILED_PRECONDITION when there is no such one.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Create(std::shared_ptr<const Driver> driver,
                                                             int ordinal, Hooks hooks);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  // Calls one entry point with the context current on this thread. UNAVAILABLE without a call once
  // the device is lost. Use MK_CUDA, which supplies the name.
  template <typename... Parameters, typename... Arguments>
  absl::Status Call(const char* name, cu::Result (*function)(Parameters...),
                    Arguments... arguments) {
    const absl::Status current = MakeCurrent();
    if (!current.ok()) return current;
    return Judge(name, function(arguments...));
  }

  // The same in a destructor: a failure is logged and counted. Skipped once the device is lost: the
  // process is about to end, and the driver gives all back then.
  template <typename... Parameters, typename... Arguments>
  void Release(const char* name, cu::Result (*function)(Parameters...), Arguments... arguments) {
    if (lost_.load()) return;
    const absl::Status status = Call(name, function, arguments...);
    if (!status.ok()) ReleaseFailed(status);
  }

  const Driver& driver() const { return *driver_; }
  cu::DeviceId device() const { return device_; }
  absl::StatusOr<int> Attribute(int attribute);

  // OK, or UNAVAILABLE naming the sticky error.
  absl::Status lost() const MK_EXCLUDES(mutex_);
  uint64_t release_failures() const { return release_failures_.load(); }
  void Log(int level, const std::string& message) const {
    if (hooks_.log) hooks_.log(level, message);
  }

 private:
  CudaContext(std::shared_ptr<const Driver> driver, Hooks hooks)
      : driver_(std::move(driver)), hooks_(std::move(hooks)) {}

  absl::Status MakeCurrent();
  absl::Status Judge(const char* name, cu::Result result) {
    return result == cu::kSuccess ? absl::OkStatus() : Failed(name, result);
  }
  absl::Status Failed(const char* name, cu::Result result) MK_EXCLUDES(mutex_);
  void ReleaseFailed(const absl::Status& status);

  const std::shared_ptr<const Driver> driver_;
  const Hooks hooks_;
  cu::DeviceId device_ = 0;
  cu::Context context_ = nullptr;
  std::atomic<bool> lost_{false};
  std::atomic<uint64_t> release_failures_{0};
  mutable Mutex mutex_;
  std::string why_lost_ MK_GUARDED_BY(mutex_);
};

// MK_CUDA(context, MemFree, address): a status of cuMemFree_v2(address).
#define MK_CUDA(context, member, ...) \
  (context).Call(::mk::cu::k##member##Symbol, (context).driver().member, __VA_ARGS__)
#define MK_CUDA_RELEASE(context, member, ...) \
  (context).Release(::mk::cu::k##member##Symbol, (context).driver().member, __VA_ARGS__)

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_CUDA_CONTEXT_H_
