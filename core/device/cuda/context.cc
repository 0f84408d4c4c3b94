#include "core/device/cuda/context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/device/cuda/errors.h"

namespace mk {

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Create(
    std::shared_ptr<const Driver> driver, int ordinal, Hooks hooks) {
  auto context = std::unique_ptr<CudaContext>(new CudaContext(std::move(driver), std::move(hooks)));
  const Driver& d = *context->driver_;
  int count = 0;
  MK_RETURN_IF_ERROR(context->Judge(cu::kDeviceGetCountSymbol, d.DeviceGetCount(&count)));
  if (ordinal < 0 || ordinal >= count) {
    return absl::FailedPreconditionError(
        absl::StrCat("no CUDA device ", ordinal, ": the driver sees ", count));
  }
  MK_RETURN_IF_ERROR(context->Judge(cu::kDeviceGetSymbol, d.DeviceGet(&context->device_, ordinal)));
  MK_RETURN_IF_ERROR(
      context->Judge(cu::kDevicePrimaryCtxRetainSymbol,
                     d.DevicePrimaryCtxRetain(&context->context_, context->device_)));
  return context;
}

CudaContext::~CudaContext() {
  if (context_ == nullptr || lost_.load()) return;
  const absl::Status status =
      Judge(cu::kDevicePrimaryCtxReleaseSymbol, driver_->DevicePrimaryCtxRelease(device_));
  if (!status.ok()) ReleaseFailed(status);
}

absl::StatusOr<int> CudaContext::Attribute(int attribute) {
  int value = 0;
  MK_RETURN_IF_ERROR(MK_CUDA(*this, DeviceGetAttribute, &value, attribute, device_));
  return value;
}

absl::Status CudaContext::lost() const {
  if (!lost_.load()) return absl::OkStatus();
  MutexLock lock(mutex_);
  return absl::UnavailableError(absl::StrCat("the device is lost: ", why_lost_));
}

// At each call and not once per thread: it is a store into the driver's thread-local memory, and it
// leaves nothing to go wrong when threads come and go.
absl::Status CudaContext::MakeCurrent() {
  if (lost_.load()) return lost();
  return Judge(cu::kCtxSetCurrentSymbol, driver_->CtxSetCurrent(context_));
}

absl::Status CudaContext::Failed(const char* name, cu::Result result) {
  absl::Status status = CudaError(*driver_, name, result);
  if (!IsSticky(result)) return status;
  {
    MutexLock lock(mutex_);
    if (lost_.load()) return status;
    why_lost_ = std::string(status.message());
    lost_.store(true);
  }
  if (hooks_.on_lost) hooks_.on_lost(status);
  return status;
}

void CudaContext::ReleaseFailed(const absl::Status& status) {
  release_failures_.fetch_add(1);
  Log(3, absl::StrCat("cuda: not given back: ", status.message()));
}

}  // namespace mk
