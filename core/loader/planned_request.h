// What a pack is planned and measured with: which board, which inputs, which device.
#ifndef MERGEKERNEL_CORE_LOADER_PLANNED_REQUEST_H_
#define MERGEKERNEL_CORE_LOADER_PLANNED_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/loader/golden.h"
#include "core/loader/loaded_model.h"
#include "core/run/request.h"

namespace mk {

// The most that one input, or all outputs, may take.
inline constexpr uint64_t kMostPlannedBytes = uint64_t{1} << 30;

// An input of the planned run: `shape` as a request would have it.
struct PlannedInput {
  std::string name;
  std::vector<int64_t> shape;
};

// "image=224x224x3". INVALID_ARGUMENT for what does not read so.
absl::StatusOr<PlannedInput> ParsePlannedInput(const std::string& text);

struct PlanOptions {
  std::string board = "agx-orin-64gb";
  // Empty: the inputs of the pack's first golden case. Their bytes are zeros; BYTES cannot be
  // planned.
  std::vector<PlannedInput> inputs;
  // Where the plan is also run and clocked, as `--device` names devices; empty: nowhere.
  std::string measure_on;
  int runs = 20;  // of the whole model, and of each launch within one run; at least 1
};

// A validated request as `options` say, with the bytes that it points to.
class PlannedRequest {
 public:
  // INVALID_ARGUMENT where there is no golden case to take shapes from, or the inputs do not fit.
  static absl::StatusOr<PlannedRequest> Make(const LoadedModel& model, const PlanOptions& options);
  const InferRequest& request() const { return request_; }

 private:
  InferRequest request_;
  std::vector<char> zeros_;
  std::vector<GoldenCase> golden_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_PLANNED_REQUEST_H_
