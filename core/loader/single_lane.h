// A loaded model with one lane and no scheduler: what runs it where requests come one by one, in
// the probe, in the runner of verdicts and in tests. The lane is what the daemon's lanes are: the
// manifest's scratch for this kind of device, a stream, host memory for outputs.
#ifndef MERGEKERNEL_CORE_LOADER_SINGLE_LANE_H_
#define MERGEKERNEL_CORE_LOADER_SINGLE_LANE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/device/arena.h"
#include "core/device/device.h"
#include "core/loader/loaded_model.h"
#include "core/run/device_lane.h"
#include "core/run/host_pool.h"
#include "core/run/run_model.h"

namespace mk {

// One thread at a time. Ends before its model and its device.
class SingleLane {
 public:
  // `capture` false: every run by its launches, whatever the pack allows.
  static absl::StatusOr<std::unique_ptr<SingleLane>> Create(LoadedModel& model, Device& device,
                                                            bool capture = true);

  // REQUIRES ValidateRequest has passed. As RunModel.
  absl::StatusOr<InferResponse> Run(const InferRequest& request);

  // Whether a second and a third run of a request are done in other ways than the first.
  bool captures() const { return lane_ != nullptr; }
  const Arena& scratch() const { return *scratch_; }

 private:
  SingleLane(LoadedModel& model, std::unique_ptr<Arena> scratch, std::unique_ptr<DeviceLane> lane);

  LoadedModel& model_;
  const std::unique_ptr<Arena> scratch_;
  HostPool outputs_;
  const std::unique_ptr<DeviceLane> lane_;  // null on the CPU device
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_SINGLE_LANE_H_
