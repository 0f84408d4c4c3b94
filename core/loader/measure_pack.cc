#include "core/loader/measure_pack.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/device/host_services.h"
#include "core/device/open_device.h"
#include "core/device/timed_device.h"
#include "core/loader/loaded_model.h"
#include "core/loader/single_lane.h"

namespace mk {
namespace {

using mergekernel::v1::Plan;
using mergekernel::v1::PlanLaunch;

constexpr int kClockedRuns = 5;
// Before anything counts: the first two runs of a request go by launches, the third captures.
constexpr int kWarmRuns = 5;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string Text(const std::string& kernel, const uint32_t* grid, const uint32_t* block) {
  return absl::StrCat(kernel, " ", absl::StrJoin(grid, grid + 3, "x"), " of ",
                      absl::StrJoin(block, block + 3, "x"));
}

absl::Status SameLaunches(const std::vector<TimedLaunch>& there, const Plan& plan) {
  for (size_t i = 0; i < there.size() || i < static_cast<size_t>(plan.launches_size()); ++i) {
    std::string real = "none", planned = "none";
    if (i < there.size()) {
      real = Text(there[i].kernel, there[i].dims.grid, there[i].dims.block);
    }
    if (i < static_cast<size_t>(plan.launches_size())) {
      const PlanLaunch& launch = plan.launches(static_cast<int>(i));
      planned = Text(launch.kernel(), launch.grid().data(), launch.block().data());
    }
    if (real == planned) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "launch ", i + 1, " is ", real, " on the device and ", planned, " in the plan for board '",
        plan.board(), "': plan for the board that the device is"));
  }
  return absl::OkStatus();
}

// Seconds of each of `runs` whole runs.
absl::StatusOr<std::vector<double>> WholeRuns(LoadedModel& model, Device& device,
                                              const InferRequest& request, int runs) {
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<SingleLane> lane, SingleLane::Create(model, device));
  std::vector<double> seconds;
  for (int i = 0; i < kWarmRuns + runs; ++i) {
    const int64_t begin = SystemClock().NowNs();
    MK_RETURN_IF_ERROR(lane->Run(request).status());
    if (i < kWarmRuns) continue;
    seconds.push_back(static_cast<double>(SystemClock().NowNs() - begin) * 1e-9);
  }
  return seconds;
}

absl::Status EachLaunch(LoadedModel& model, TimedDevice& device, const InferRequest& request,
                        Plan& plan) {
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<SingleLane> lane,
                      SingleLane::Create(model, device, false));
  std::vector<std::vector<double>> seconds(static_cast<size_t>(plan.launches_size()));
  for (int i = 0; i < kClockedRuns; ++i) {
    device.Clear();
    MK_RETURN_IF_ERROR(lane->Run(request).status());
    MK_RETURN_IF_ERROR(SameLaunches(device.launches(), plan));
    for (size_t k = 0; k < seconds.size(); ++k) {
      seconds[k].push_back(device.launches()[k].seconds);
    }
  }
  for (size_t k = 0; k < seconds.size(); ++k) {
    plan.mutable_launches(static_cast<int>(k))->set_measured_seconds(Median(seconds[k]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasurePack(std::shared_ptr<const SealedPack> pack, const PlanOptions& options,
                         Plan& plan) {
  OpenDeviceOptions device_options;
  device_options.name = options.measure_on;
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(device_options));
  if (device->facts().host_addressable) {
    return absl::InvalidArgumentError(absl::StrCat("measure: device '", options.measure_on,
                                                   "' launches no kernels: 'cuda' does"));
  }
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<TimedDevice> timed,
                      TimedDevice::Create(*device, options.runs));
  HostServicesOptions services_options;
  services_options.threads = 1;
  const HostServices services(services_options);
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedModel> model,
                      LoadedModel::Create(std::move(pack), *timed, services, nullptr));
  MK_ASSIGN_OR_RETURN(const PlannedRequest planned, PlannedRequest::Make(*model, options));
  MK_RETURN_IF_ERROR(EachLaunch(*model, *timed, planned.request(), plan));
  MK_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                      WholeRuns(*model, *device, planned.request(), options.runs));
  plan.set_measured_on(device->facts().name);
  plan.set_measured_runs(static_cast<uint32_t>(options.runs));
  plan.set_measured_seconds(Median(seconds));
  plan.set_measured_best_seconds(*std::min_element(seconds.begin(), seconds.end()));
  return absl::OkStatus();
}

}  // namespace mk
