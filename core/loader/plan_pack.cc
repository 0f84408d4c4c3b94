#include "core/loader/plan_pack.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/checked.h"
#include "core/base/clock.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/device/arena.h"
#include "core/device/host_services.h"
#include "core/device/planning/planning_device.h"
#include "core/loader/golden.h"
#include "core/loader/loaded_model.h"
#include "core/loader/manifest.h"
#include "core/run/device_lane.h"
#include "core/run/run_model.h"
#include "core/run/validate.h"

namespace mk {
namespace {

using mergekernel::v1::Plan;

constexpr uint64_t kMostInputBytes = uint64_t{1} << 30;

absl::StatusOr<InputTensor> ZeroInput(const Signature& signature, const PlannedInput& input,
                                      std::vector<char>& zeros) {
  for (const TensorSpec& spec : signature.inputs) {
    if (spec.name != input.name) continue;
    const uint64_t element = DtypeSize(spec.dtype);
    if (element == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", spec.name, "' is BYTES: its work depends on what they say"));
    }
    uint64_t bytes = element;
    for (const int64_t dim : input.shape) {
      bytes = CheckedMul(bytes, static_cast<uint64_t>(dim)).value_or(UINT64_MAX);
    }
    if (bytes > kMostInputBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", spec.name, "': more than ", kMostInputBytes, " bytes"));
    }
    zeros.resize(std::max<size_t>(zeros.size(), bytes));
    return InputTensor{spec.name, spec.dtype, input.shape, nullptr, bytes};
  }
  std::vector<std::string> names;
  for (const TensorSpec& spec : signature.inputs) names.push_back(spec.name);
  return absl::InvalidArgumentError(absl::StrCat("no input '", Printable(input.name, 80),
                                                 "'; the pack has ", absl::StrJoin(names, ", ")));
}

// The request to plan, and what its bytes live in.
struct PlannedRequest {
  InferRequest request;
  std::vector<char> zeros;
  std::vector<GoldenCase> golden;
};

absl::Status MakeRequest(const LoadedModel& model, const PlanOptions& options,
                         PlannedRequest& planned) {
  const auto& manifest = model.sealed().manifest;
  if (options.inputs.empty()) {
    if (!manifest.has_golden()) {
      return absl::InvalidArgumentError(
          "the pack has no golden case to take shapes from: name its inputs");
    }
    const std::string_view bytes = model.sealed().small.at(manifest.golden().file())->bytes();
    MK_ASSIGN_OR_RETURN(planned.golden, ReadGolden(bytes, model.signature()));
    if (planned.golden.empty()) return absl::InvalidArgumentError("its golden file has no case");
    planned.request = planned.golden[0].request;
    return absl::OkStatus();
  }
  for (const PlannedInput& input : options.inputs) {
    MK_ASSIGN_OR_RETURN(InputTensor tensor, ZeroInput(model.signature(), input, planned.zeros));
    planned.request.inputs.push_back(std::move(tensor));
  }
  for (InputTensor& tensor : planned.request.inputs) tensor.data = planned.zeros.data();
  return ValidateRequest(model.signature(), planned.request);
}

void Fill(const PlanningDevice& device, const InferRequest& request, Plan& plan) {
  for (const InputTensor& input : request.inputs) {
    auto* tensor = plan.add_inputs();
    tensor->set_name(input.name);
    tensor->set_datatype(std::string(DtypeName(input.dtype)));
    for (const int64_t dim : input.shape) tensor->add_shape(dim);
  }
  plan.set_copied_to_device_bytes(device.copied_to_device_bytes());
  plan.set_copied_to_host_bytes(device.copied_to_host_bytes());
  for (const PlannedLaunch& from : device.launches()) {
    auto* to = plan.add_launches();
    to->set_kernel(from.kernel);
    for (const uint32_t n : from.dims.grid) to->add_grid(n);
    for (const uint32_t n : from.dims.block) to->add_block(n);
    to->set_dynamic_shared_bytes(from.dims.shared_bytes);
    to->set_bytes(from.dims.work.bytes);
    to->set_flops(from.dims.work.flops);
    to->set_tensor_flops(from.dims.work.tensor_flops);
    to->set_scratch_live_bytes(from.live_bytes);
    if (!from.resources) continue;
    to->set_has_resources(true);
    to->set_registers(static_cast<uint32_t>(from.resources->registers));
    to->set_static_shared_bytes(from.resources->shared_bytes);
    to->set_stack_bytes(from.resources->stack_bytes);
  }
}

}  // namespace

absl::StatusOr<PlannedInput> ParsePlannedInput(const std::string& text) {
  const auto wrong = [&text] {
    return absl::InvalidArgumentError(absl::StrCat("input '", Printable(text, 120),
                                                   "' must read NAME=DIMxDIMx..., as "
                                                   "image=224x224x3"));
  };
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) return wrong();
  PlannedInput input{text.substr(0, equals), {}};
  for (const absl::string_view part : absl::StrSplit(text.substr(equals + 1), 'x')) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(part, &dim) || dim < 0 || input.shape.size() >= MK_MAX_RANK) {
      return wrong();
    }
    input.shape.push_back(dim);
  }
  return input;
}

absl::StatusOr<Plan> PlanPack(std::shared_ptr<const SealedPack> pack, const PlanOptions& options) {
  MK_ASSIGN_OR_RETURN(const Board* const board, FindBoard(options.board));
  const std::unique_ptr<PlanningDevice> device = NewPlanningDevice(*board);
  HostServicesOptions services_options;
  services_options.threads = 1;
  const HostServices services(services_options);
  Plan plan;
  plan.set_board(board->name);
  const auto note = [&plan](int level, const std::string& line) {
    if (level > 0) plan.add_notes(line);
  };
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedModel> model,
                      LoadedModel::Create(std::move(pack), *device, services, note));
  plan.set_weights_bytes(model->memory().live(Region::kWeights));

  PlannedRequest planned;
  MK_RETURN_IF_ERROR(MakeRequest(*model, options, planned));
  device->Clear();
  // Whatever the manifest declares: how much it takes is what is asked.
  const uint64_t room = device->free_bytes() / 256 * 256;  // its end aligned as its beginning
  MemoryAccount account({0, room, 0});
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<Arena> scratch, Arena::Create(*device, account, room));
  device->WatchMemory([&account] { return account.live(Region::kScratch); });
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceLane> lane, DeviceLane::Create(*device, false));
  HostPool outputs(kMostInputBytes, 0);
  const RunEnvironment environment = {model->pack(), model->model(), model->signature(), *scratch,
                                      outputs,       SystemClock(),  lane.get()};
  StopSignal stop;
  const auto response = RunModel(environment, planned.request, stop);
  MK_RETURN_IF_ERROR(response.status());
  plan.set_scratch_peak_bytes(scratch->high_water_bytes());
  Fill(*device, planned.request, plan);
  device->WatchMemory(nullptr);
  return plan;
}

}  // namespace mk
