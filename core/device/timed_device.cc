#include "core/device/timed_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace mk {

absl::StatusOr<std::unique_ptr<TimedDevice>> TimedDevice::Create(Device& device, int repeats) {
  if (repeats < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("TimedDevice: repeats ", repeats, " must be at least 1"));
  }
  MK_ASSIGN_OR_RETURN(std::unique_ptr<Event> begin, device.NewEvent());
  MK_ASSIGN_OR_RETURN(std::unique_ptr<Event> end, device.NewEvent());
  return std::unique_ptr<TimedDevice>(
      new TimedDevice(device, repeats, std::move(begin), std::move(end)));
}

absl::Status TimedDevice::Launch(Stream& stream, DeviceKernel& kernel, const LaunchDims& dims,
                                 const void* params, uint64_t params_size_bytes) {
  MK_RETURN_IF_ERROR(device_.Launch(stream, kernel, dims, params, params_size_bytes));
  MK_RETURN_IF_ERROR(begin_->Record(stream));
  for (int i = 0; i < repeats_; ++i) {
    MK_RETURN_IF_ERROR(device_.Launch(stream, kernel, dims, params, params_size_bytes));
  }
  MK_RETURN_IF_ERROR(end_->Record(stream));
  MK_RETURN_IF_ERROR(end_->Synchronize());
  MK_ASSIGN_OR_RETURN(const double milliseconds, end_->MillisecondsSince(*begin_));
  launches_.push_back({kernel.name(), dims, milliseconds * 1e-3 / repeats_});
  return absl::OkStatus();
}

}  // namespace mk
