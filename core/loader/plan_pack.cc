#include "core/loader/plan_pack.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/device/arena.h"
#include "core/device/host_services.h"
#include "core/device/planning/planning_device.h"
#include "core/loader/loaded_model.h"
#include "core/loader/manifest.h"
#include "core/loader/planned_request.h"
#include "core/run/device_lane.h"
#include "core/run/run_model.h"

namespace mk {
namespace {

using mergekernel::v1::Plan;

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

absl::StatusOr<Plan> PlanOn(const Board& board, std::shared_ptr<const SealedPack> pack,
                            const PlanOptions& options) {
  const std::unique_ptr<PlanningDevice> device = NewPlanningDevice(board);
  HostServicesOptions services_options;
  services_options.threads = 1;
  const HostServices services(services_options);
  Plan plan;
  plan.set_board(board.name);
  const auto note = [&plan](int level, const std::string& line) {
    if (level > 0) plan.add_notes(line);
  };
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedModel> model,
                      LoadedModel::Create(std::move(pack), *device, services, note));
  plan.set_weights_bytes(model->memory().live(Region::kWeights));

  MK_ASSIGN_OR_RETURN(const PlannedRequest planned, PlannedRequest::Make(*model, options));
  device->Clear();
  // Whatever the manifest declares: how much it takes is what is asked.
  const uint64_t room = device->free_bytes() / 256 * 256;  // its end aligned as its beginning
  MemoryAccount account({0, room, 0});
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<Arena> scratch, Arena::Create(*device, account, room));
  device->WatchMemory([&account] { return account.live(Region::kScratch); });
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceLane> lane, DeviceLane::Create(*device, false));
  HostPool outputs(kMostPlannedBytes, 0);
  const RunEnvironment environment = {model->pack(), model->model(), model->signature(), *scratch,
                                      outputs,       SystemClock(),  lane.get()};
  StopSignal stop;
  const auto response = RunModel(environment, planned.request(), stop);
  MK_RETURN_IF_ERROR(response.status());
  plan.set_scratch_peak_bytes(scratch->high_water_bytes());
  Fill(*device, planned.request(), plan);
  device->WatchMemory(nullptr);
  return plan;
}

}  // namespace

absl::StatusOr<Plan> PlanPack(std::shared_ptr<const SealedPack> pack, const PlanOptions& options) {
  MK_ASSIGN_OR_RETURN(const Board* const board, FindBoard(options.board));
  return PlanOn(*board, std::move(pack), options);
}

absl::Status AdmitByPlan(std::shared_ptr<const SealedPack> pack, const DeviceFacts& facts) {
  const mergekernel::v1::Manifest& manifest = pack->manifest;
  if (!manifest.has_golden()) return absl::OkStatus();
  const SmLimits limits = {facts.sm,
                           0,
                           0,
                           0,
                           static_cast<uint32_t>(facts.shared_bytes_per_unit),
                           static_cast<uint32_t>(facts.shared_bytes_per_block)};
  const Board board = {facts.kind.c_str(),
                       facts.name.c_str(),
                       &limits,
                       facts.compute_units,
                       0,
                       {},
                       {},
                       {},
                       facts.l2_bytes,
                       facts.budget_bytes,
                       "the device itself"};
  const absl::StatusOr<Plan> planned = PlanOn(board, pack, {});
  if (!planned.ok()) return absl::OkStatus();
  const Plan& plan = *planned;
  const struct {
    const char* what;
    uint64_t planned, declared;
  } rows[] = {
      {"weights_bytes", plan.weights_bytes(), manifest.memory().weights_bytes()},
      {"device_scratch_bytes", plan.scratch_peak_bytes(), ScratchBytesOn(manifest, facts.kind)}};
  for (const auto& row : rows) {
    if (row.planned <= row.declared) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("plan: manifest.memory.", row.what, " declares ", row.declared,
                     " bytes, and the golden case takes ", row.planned, " on ", facts.name));
  }
  return absl::OkStatus();
}

}  // namespace mk
