// A run on a device with memory of its own: inputs there, outputs back, and in between the pack's
// launches, as they come or as a graph.
//
// Rule: a run ends only when its stream is idle. So scratch, inputs and outputs may be used again
// at once, and an unload finds nothing under way.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/run/run.h"

namespace mk {

void Run::AddDeviceFunctions(mk_run& run) {
  run.launch = [](void* self, mk_kernel* kernel, const mk_launch* launch) {
    return Of(self).Launch(kernel, launch);
  };
  run.copy_to_host = [](void* self, void* host, const void* device, mk_u64 size_bytes) {
    return Of(self).CopyNow(host, device, size_bytes, true);
  };
  run.copy_to_device = [](void* self, void* device, const void* host, mk_u64 size_bytes) {
    return Of(self).CopyNow(device, host, size_bytes, false);
  };
}

namespace {

// A pack of 1.1 says nothing of it.
LaunchWork CostOf(const mk_launch& launch) {
  if (launch.struct_size < sizeof(mk_launch)) return {};
  return {launch.bytes, launch.flops, launch.tensor_flops};
}

}  // namespace

mk_status Run::Launch(mk_kernel* kernel, const mk_launch* launch) {
  DeviceLane* lane = environment_.lane;
  if (lane == nullptr) {
    return Fail(absl::UnimplementedError("launch: this device runs CPU twins and no device code"));
  }
  if (launch->struct_size < MK_LAUNCH_SIZE_1_1 || kernel == nullptr) {
    return Breach(absl::StrCat("launch: mk_launch.struct_size ", launch->struct_size, " < ",
                               MK_LAUNCH_SIZE_1_1, ", or no kernel"));
  }
  auto& host_kernel = *reinterpret_cast<DeviceKernel*>(kernel);
  last_kernel_ = host_kernel.name();
  const LaunchDims dims = {{launch->grid[0], launch->grid[1], launch->grid[2]},
                           {launch->block[0], launch->block[1], launch->block[2]},
                           launch->shared_bytes,
                           CostOf(*launch)};
  const absl::Status status = lane->device().Launch(lane->stream(), host_kernel, dims,
                                                    launch->params, launch->params_size_bytes);
  if (status.ok()) return MK_OK;
  capture_failed_ = capture_failed_ || (capturing_ && absl::IsFailedPrecondition(status));
  return Fail(status);
}

mk_status Run::CopyNow(void* to, const void* from, mk_u64 size_bytes, bool to_host) {
  DeviceLane* lane = environment_.lane;
  if (lane == nullptr) {
    if (size_bytes != 0) std::memcpy(to, from, size_bytes);
    return MK_OK;
  }
  copied_by_pack_ = true;
  if (capturing_) {
    // Unlike the run before it: it does not decide by shapes and parameters alone.
    capture_failed_ = true;
    return Fail(absl::FailedPreconditionError("a copy cannot be captured"));
  }
  absl::Status status;
  if (to_host) {
    status = lane->device().CopyToHost(lane->stream(), to, from, size_bytes);
    if (status.ok()) status = lane->stream().Synchronize();
  } else {
    status = lane->device().CopyToDevice(lane->stream(), to, from, size_bytes);
  }
  return status.ok() ? MK_OK : Fail(status);
}

absl::Status Run::PlaceInputs(DeviceLane& lane) {
  for (const InputTensor& input : request_.inputs) {
    device_inputs_.push_back(nullptr);
    if (input.dtype == MK_DTYPE_BYTES || input.size_bytes == 0) continue;
    MK_ASSIGN_OR_RETURN(device_inputs_.back(), environment_.scratch.AllocateEnd(input.size_bytes));
    MK_RETURN_IF_ERROR(lane.device().CopyToDevice(lane.stream(), device_inputs_.back(), input.data,
                                                  input.size_bytes));
  }
  return absl::OkStatus();
}

absl::Status Run::FetchOutputs(DeviceLane& lane) {
  for (size_t i = 0; i < produced_.size(); ++i) {
    const HostBlock& block = produced_[i]->block;
    if (device_outputs_[i] == nullptr || block.empty()) continue;
    MK_RETURN_IF_ERROR(
        lane.device().CopyToHost(lane.stream(), block.data(), device_outputs_[i], block.size()));
  }
  return lane.stream().Synchronize();
}

// BYTES stay on the host, where a pack may look at them.
bool Run::CanBeCaptured() const {
  const auto is_bytes = [](const auto& tensor) { return tensor.dtype == MK_DTYPE_BYTES; };
  const std::vector<TensorSpec>& outputs = environment_.signature.outputs;
  return std::none_of(request_.inputs.begin(), request_.inputs.end(), is_bytes) &&
         std::none_of(outputs.begin(), outputs.end(), is_bytes);
}

// As before the pack was called: nothing produced, its scratch free, the inputs in their place.
void Run::StartOver(uint64_t end_mark) {
  environment_.scratch.Release(0);
  environment_.scratch.ReleaseEnd(end_mark);
  for (auto& tensor : produced_) tensor.reset();
  std::fill(device_outputs_.begin(), device_outputs_.end(), nullptr);
  message_.clear();
  breach_ = absl::OkStatus();
}

absl::Status Run::ByLaunches(DeviceLane& lane) {
  MK_RETURN_IF_ERROR(CallPack(Inputs(device_inputs_)));
  return FetchOutputs(lane);
}

// `*captured` false with an OK status: it cannot be captured, and nothing has been started.
absl::Status Run::Capture(DeviceLane& lane, const std::string& key, bool* captured) {
  *captured = false;
  absl::Status status = lane.stream().BeginCapture();
  if (!status.ok()) return absl::IsUnimplemented(status) ? absl::OkStatus() : status;
  capturing_ = true;
  status = CallPack(Inputs(device_inputs_));
  capturing_ = false;
  absl::StatusOr<std::unique_ptr<Graph>> graph = lane.stream().EndCapture();
  if (capture_failed_ || (status.ok() && absl::IsFailedPrecondition(graph.status()))) {
    return absl::OkStatus();
  }
  MK_RETURN_IF_ERROR(status);
  MK_RETURN_IF_ERROR(graph.status());
  *captured = true;
  RunGraph run;
  run.graph = *std::move(graph);
  run.inputs = device_inputs_;
  for (size_t i = 0; i < produced_.size(); ++i) {
    run.outputs.push_back({produced_[i]->shape, produced_[i]->block.size(), device_outputs_[i]});
  }
  status = lane.stream().LaunchGraph(*run.graph);
  if (status.ok()) status = FetchOutputs(lane);
  // Kept only when its first launch went well. The graph must not go while it runs.
  if (!status.ok()) return lane.stream().Synchronize().IgnoreError(), status;
  lane.graphs().Store(key, std::move(run));
  return absl::OkStatus();
}

absl::Status Run::Replay(DeviceLane& lane, RunGraph& graph) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const RunGraph::Output& output = graph.outputs[i];
    const TensorSpec& spec = environment_.signature.outputs[i];
    MK_ASSIGN_OR_RETURN(HostBlock block, environment_.outputs.Allocate(output.size_bytes));
    produced_[i] = OutputTensor{spec.name, spec.dtype, output.shape, std::move(block)};
    device_outputs_[i] = output.device;
  }
  MK_RETURN_IF_ERROR(lane.stream().LaunchGraph(*graph.graph));
  return FetchOutputs(lane);
}

absl::Status Run::Attempt(DeviceLane& lane, const std::string& key) {
  MK_RETURN_IF_ERROR(PlaceInputs(lane));
  if (!CanBeCaptured()) return ByLaunches(lane);
  RunGraph* graph = nullptr;
  const RunGraphs::Step step = lane.graphs().Next(key, &graph);
  // The same requests find the same places; where that should ever fail, launches are right anyway.
  if (step == RunGraphs::Step::kReplay && graph->inputs == device_inputs_) {
    return Replay(lane, *graph);
  }
  if (step == RunGraphs::Step::kCapture) {
    const uint64_t end_mark = environment_.scratch.EndMark();
    bool captured = false;
    const absl::Status status = Capture(lane, key, &captured);
    if (captured || !status.ok()) return status;
    lane.graphs().Refuse(key);
    StartOver(end_mark);
    return ByLaunches(lane);
  }
  MK_RETURN_IF_ERROR(ByLaunches(lane));
  if (copied_by_pack_) {
    lane.graphs().Refuse(key);
  } else if (step == RunGraphs::Step::kLaunch) {
    lane.graphs().RanWell(key);
  }
  return absl::OkStatus();
}

absl::StatusOr<InferResponse> Run::ExecuteOnDevice(DeviceLane& lane) {
  environment_.scratch.Reset();
  absl::Status status = Attempt(lane, RunKey(request_));
  if (!status.ok()) {
    // What was started goes on: not into memory that others use. Why it fails is known already.
    lane.stream().Synchronize().IgnoreError();
    if (!lane.device().lost().ok() && !last_kernel_.empty()) {
      status = absl::Status(status.code(),
                            absl::StrCat("pack '", environment_.pack.name, "', last kernel '",
                                         last_kernel_, "': ", status.message()));
    }
  }
  environment_.scratch.Reset();
  MK_RETURN_IF_ERROR(status);
  return Collect();
}

}  // namespace mk
