#include "core/run/run_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/run/run.h"
#include "core/run/validate.h"

namespace mk {
namespace {

constexpr size_t kMaxMessage = 1024;

}  // namespace

mk_status Run::Breach(std::string message) {
  // The first one; what follows may come of it.
  if (breach_.ok()) {
    breach_ = absl::InternalError(
        absl::StrCat("pack '", environment_.pack.name, "': ", std::move(message)));
  }
  return MK_INTERNAL;
}

mk_status Run::Scratch(mk_u64 size_bytes, void** data) {
  const absl::StatusOr<void*> memory = environment_.scratch.Allocate(size_bytes);
  if (!memory.ok()) return Fail(memory.status());
  *data = *memory;
  return MK_OK;
}

mk_status Run::Output(const char* name, mk_dtype dtype, mk_u32 rank, const mk_i64* shape,
                      mk_u64 size_bytes, void** data) {
  const std::vector<TensorSpec>& specs = environment_.signature.outputs;
  size_t i = 0;
  while (i < specs.size() && specs[i].name != name) ++i;
  if (i == specs.size()) return Breach(absl::StrCat("unknown output '", Printable(name), "'"));
  const TensorSpec& spec = specs[i];
  if (produced_[i]) return Breach(absl::StrCat("output '", spec.name, "' produced twice"));
  if (dtype != spec.dtype || rank != spec.shape.size()) {
    return Breach(absl::StrCat("output '", spec.name, "': ", std::string(DtypeName(dtype)),
                               " of rank ", rank, ", its signature says ",
                               std::string(DtypeName(spec.dtype)), " of rank ", spec.shape.size()));
  }
  OutputTensor tensor{spec.name, dtype, std::vector<int64_t>(shape, shape + rank), {}};
  for (size_t d = 0; d < rank; ++d) {
    if (shape[d] < 0 || (spec.shape[d] >= 0 && shape[d] != spec.shape[d])) {
      return Breach(absl::StrCat("output '", spec.name, "': dim ", d, " is ", shape[d],
                                 ", its signature says ", spec.shape[d]));
    }
  }
  const auto count = CheckedProduct(tensor.shape);
  const auto size = count ? CheckedMul(*count, DtypeSize(dtype)) : std::nullopt;
  if (!size || (dtype != MK_DTYPE_BYTES && *size != size_bytes)) {
    return Breach(absl::StrCat("output '", spec.name, "': ", size_bytes, " bytes for shape [",
                               absl::StrJoin(tensor.shape, ","), "]"));
  }
  // Also for an output that was not asked for: the pack may write until `run` returns, so a scratch
  // scope of its own must not end that memory, and its declared scratch has no room for it.
  absl::StatusOr<HostBlock> block = environment_.outputs.Allocate(size_bytes);
  if (!block.ok()) return Fail(block.status());
  *data = block->data();
  tensor.block = *std::move(block);
  if (environment_.lane != nullptr && dtype != MK_DTYPE_BYTES) {
    // From the end of the scratch, so that the pack's scopes do not end it.
    const absl::StatusOr<void*> memory = environment_.scratch.AllocateEnd(size_bytes);
    if (!memory.ok()) return Fail(memory.status());
    *data = device_outputs_[i] = *memory;
  }
  produced_[i] = std::move(tensor);
  return MK_OK;
}

mk_run Run::Table(const std::vector<mk_tensor>& inputs) {
  mk_run run = {};
  run.struct_size = sizeof run;
  run.input_count = static_cast<mk_u32>(inputs.size());
  run.self = this;
  run.inputs = inputs.data();
  run.set_error = [](void* self, const char* message, mk_u64 size) {
    Of(self).message_.assign(message, std::min<size_t>(size, kMaxMessage));
  };
  run.output = [](void* self, const char* name, mk_dtype dtype, mk_u32 rank, const mk_i64* shape,
                  mk_u64 size_bytes, void** data) {
    return Of(self).Output(name, dtype, rank, shape, size_bytes, data);
  };
  run.scratch = [](void* self, mk_u64 size_bytes, void** data) {
    return Of(self).Scratch(size_bytes, data);
  };
  run.scratch_mark = [](void* self) -> mk_u64 { return Of(self).environment_.scratch.Mark(); };
  run.scratch_release = [](void* self, mk_u64 mark) {
    Of(self).environment_.scratch.Release(mark);
  };
  AddRequestFunctions(run);
  AddDeviceFunctions(run);
  return run;
}

void Run::AddRequestFunctions(mk_run& run) {
  run.cancelled = [](void* self) -> mk_i32 {
    const Run& r = Of(self);
    return r.stop_.cancelled.load(std::memory_order_relaxed) || r.DeadlinePassed();
  };
  run.parameter_int64 = [](void* self, const char* key, mk_i64* value) -> mk_i32 {
    if (const auto* found = Of(self).Find<int64_t>(key)) return *value = *found, 1;
    const auto* wide = Of(self).Find<uint64_t>(key);
    if (wide == nullptr || *wide > INT64_MAX) return 0;
    *value = static_cast<mk_i64>(*wide);
    return 1;
  };
  run.parameter_double = [](void* self, const char* key, double* value) -> mk_i32 {
    const auto* found = Of(self).Find<double>(key);
    return found ? (*value = *found, 1) : 0;
  };
  run.parameter_bool = [](void* self, const char* key, mk_i32* value) -> mk_i32 {
    const auto* found = Of(self).Find<bool>(key);
    return found ? (*value = *found ? 1 : 0, 1) : 0;
  };
  run.parameter_string = [](void* self, const char* key, const char** value,
                            mk_u64* size) -> mk_i32 {
    const auto* found = Of(self).Find<std::string>(key);
    if (found == nullptr) return 0;
    *value = found->data();
    *size = found->size();
    return 1;
  };
  run.now_ns = [](void* self) -> mk_u64 {
    return static_cast<mk_u64>(Of(self).environment_.clock.NowNs());
  };
}

absl::Status Run::Verdict(mk_status code) {
  if (!breach_.ok()) return breach_;
  if (code == MK_OK) return absl::OkStatus();
  if (code == MK_CANCELLED) {
    if (!stop_.cancelled.load() && DeadlinePassed()) {
      return absl::DeadlineExceededError("the deadline passed while the model ran");
    }
    return absl::CancelledError("cancelled while the model ran");
  }
  if (code < 0 || code > MK_DATA_LOSS) {
    return absl::InternalError(
        absl::StrCat("pack '", environment_.pack.name, "' answered the unknown code ", code));
  }
  return absl::Status(static_cast<absl::StatusCode>(code), Printable(message_, kMaxMessage));
}

absl::Status Run::CheckOutputs() {
  const std::vector<TensorSpec>& specs = environment_.signature.outputs;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!produced_[i]) {
      Breach(absl::StrCat("output '", specs[i].name, "' was not produced"));
      return breach_;
    }
    const OutputTensor& tensor = *produced_[i];
    if (tensor.dtype != MK_DTYPE_BYTES) continue;
    // A client would read past the elements that their lengths promise.
    const absl::Status packed = ValidatePackedBytes(
        tensor.name, tensor.block.data(), tensor.block.size(), *CheckedProduct(tensor.shape));
    if (!packed.ok()) {
      Breach(absl::StrCat("output '", specs[i].name, "': its bytes are not the ",
                          *CheckedProduct(tensor.shape), " elements of its shape"));
      return breach_;
    }
  }
  return absl::OkStatus();
}

InferResponse Run::Collect() {
  const std::vector<TensorSpec>& specs = environment_.signature.outputs;
  InferResponse response;
  if (request_.outputs.empty()) {
    for (auto& tensor : produced_) response.outputs.push_back(*std::move(tensor));
  }
  for (const std::string& name : request_.outputs) {
    size_t i = 0;
    while (specs[i].name != name) ++i;  // ValidateRequest has checked that it is there
    response.outputs.push_back(*std::move(produced_[i]));
  }
  return response;
}

std::vector<mk_tensor> Run::Inputs(const std::vector<void*>& data) const {
  std::vector<mk_tensor> inputs;
  inputs.reserve(request_.inputs.size());
  for (size_t i = 0; i < request_.inputs.size(); ++i) {
    const InputTensor& input = request_.inputs[i];
    const void* place = i < data.size() && data[i] != nullptr ? data[i] : input.data;
    inputs.push_back({input.name.c_str(), input.dtype, static_cast<mk_u32>(input.shape.size()),
                      input.shape.data(), place, input.size_bytes});
  }
  return inputs;
}

// The pack's run, its verdict, and whether all it promised is there.
absl::Status Run::CallPack(const std::vector<mk_tensor>& inputs) {
  const mk_run table = Table(inputs);
  MK_RETURN_IF_ERROR(Verdict(environment_.pack.run(environment_.model, &table)));
  return CheckOutputs();
}

absl::StatusOr<InferResponse> Run::Execute() {
  if (environment_.lane != nullptr) return ExecuteOnDevice(*environment_.lane);
  environment_.scratch.Reset();
  const absl::Status status = CallPack(Inputs({}));
  environment_.scratch.Reset();
  MK_RETURN_IF_ERROR(status);
  return Collect();
}

absl::StatusOr<InferResponse> RunModel(const RunEnvironment& environment,
                                       const InferRequest& request, const StopSignal& stop) {
  return Run(environment, request, stop).Execute();
}

}  // namespace mk
