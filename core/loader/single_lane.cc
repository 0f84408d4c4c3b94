#include "core/loader/single_lane.h"

#include <utility>

#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/loader/manifest.h"

namespace mk {
namespace {

constexpr uint64_t kMostOutputBytes = uint64_t{1} << 32;

}  // namespace

SingleLane::SingleLane(LoadedModel& model, std::unique_ptr<Arena> scratch,
                       std::unique_ptr<DeviceLane> lane)
    : model_(model),
      scratch_(std::move(scratch)),
      outputs_(kMostOutputBytes, 0),
      lane_(std::move(lane)) {}

absl::StatusOr<std::unique_ptr<SingleLane>> SingleLane::Create(LoadedModel& model, Device& device,
                                                               bool capture) {
  MK_ASSIGN_OR_RETURN(std::unique_ptr<Arena> scratch,
                      Arena::Create(device, model.memory(),
                                    ScratchBytesOn(model.sealed().manifest, device.facts().kind)));
  MK_ASSIGN_OR_RETURN(std::unique_ptr<DeviceLane> lane,
                      DeviceLane::Create(device, capture && AllowsCapture(model.pack())));
  return std::unique_ptr<SingleLane>(new SingleLane(model, std::move(scratch), std::move(lane)));
}

absl::StatusOr<InferResponse> SingleLane::Run(const InferRequest& request) {
  const RunEnvironment environment = {model_.pack(), model_.model(), model_.signature(), *scratch_,
                                      outputs_,      SystemClock(),  lane_.get()};
  StopSignal stop;
  return RunModel(environment, request, stop);
}

}  // namespace mk
