// One run from the inside: the `self` of an mk_run, shared by run_model.cc (what every device does)
// and run_on_device.cc (what a device with memory of its own adds). Not for users.
#ifndef MERGEKERNEL_CORE_RUN_RUN_H_
#define MERGEKERNEL_CORE_RUN_RUN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/run/run_model.h"

namespace mk {

class Run {
 public:
  Run(const RunEnvironment& environment, const InferRequest& request, const StopSignal& stop)
      : environment_(environment),
        request_(request),
        stop_(stop),
        produced_(environment.signature.outputs.size()),
        device_outputs_(environment.signature.outputs.size()) {}

  absl::StatusOr<InferResponse> Execute();

 private:
  static Run& Of(void* self) { return *static_cast<Run*>(self); }

  // Keeps a failure of the host's own, so that the client gets its message even if the pack passes
  // on the code alone.
  mk_status Fail(const absl::Status& status) {
    message_ = std::string(status.message());
    return static_cast<mk_status>(status.code());
  }
  // A pack that breaks the contract: its request fails, whatever the pack makes of the code.
  mk_status Breach(std::string message);
  bool DeadlinePassed() const { return environment_.clock.NowNs() >= stop_.deadline_ns; }

  template <typename T>
  const T* Find(const char* key) const {
    for (const auto& [name, value] : request_.parameters) {
      if (name == key) return std::get_if<T>(&value);
    }
    return nullptr;
  }

  mk_status Output(const char* name, mk_dtype dtype, mk_u32 rank, const mk_i64* shape,
                   mk_u64 size_bytes, void** data);
  mk_status Scratch(mk_u64 size_bytes, void** data);
  mk_run Table(const std::vector<mk_tensor>& inputs);
  void AddRequestFunctions(mk_run& run);
  void AddDeviceFunctions(mk_run& run);
  // The inputs as the pack sees them: where `data[i]` is not null it is there instead of the
  // request's own bytes.
  std::vector<mk_tensor> Inputs(const std::vector<void*>& data) const;
  absl::Status CallPack(const std::vector<mk_tensor>& inputs);
  absl::Status Verdict(mk_status code);
  absl::Status CheckOutputs();
  InferResponse Collect();

  // run_on_device.cc
  absl::StatusOr<InferResponse> ExecuteOnDevice(DeviceLane& lane);
  absl::Status Attempt(DeviceLane& lane, const std::string& key);
  absl::Status PlaceInputs(DeviceLane& lane);
  absl::Status ByLaunches(DeviceLane& lane);
  absl::Status Capture(DeviceLane& lane, const std::string& key, bool* captured);
  absl::Status Replay(DeviceLane& lane, RunGraph& graph);
  absl::Status FetchOutputs(DeviceLane& lane);
  bool CanBeCaptured() const;
  void StartOver(uint64_t end_mark);
  mk_status Launch(mk_kernel* kernel, const mk_launch* launch);
  mk_status CopyNow(void* to, const void* from, mk_u64 size_bytes, bool to_host);

  const RunEnvironment& environment_;
  const InferRequest& request_;
  const StopSignal& stop_;
  std::vector<std::optional<OutputTensor>> produced_;  // by the signature's order
  std::string message_;
  absl::Status breach_;

  // On a device with memory of its own.
  std::vector<void*> device_inputs_;   // by the request's order; null for what stays on the host
  std::vector<void*> device_outputs_;  // by the signature's order
  bool capturing_ = false;
  bool capture_failed_ = false;  // the pack did what cannot be captured
  bool copied_by_pack_ = false;  // so this run is never captured
  std::string last_kernel_;      // the one started last, for messages
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_RUN_RUN_H_
