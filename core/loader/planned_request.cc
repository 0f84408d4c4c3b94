#include "core/loader/planned_request.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/loader/manifest.h"
#include "core/run/validate.h"

namespace mk {
namespace {

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
    if (bytes > kMostPlannedBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", spec.name, "': more than ", kMostPlannedBytes, " bytes"));
    }
    zeros.resize(std::max<size_t>(zeros.size(), bytes));
    return InputTensor{spec.name, spec.dtype, input.shape, nullptr, bytes};
  }
  std::vector<std::string> names;
  for (const TensorSpec& spec : signature.inputs) names.push_back(spec.name);
  return absl::InvalidArgumentError(absl::StrCat("no input '", Printable(input.name, 80),
                                                 "'; the pack has ", absl::StrJoin(names, ", ")));
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

absl::StatusOr<PlannedRequest> PlannedRequest::Make(const LoadedModel& model,
                                                    const PlanOptions& options) {
  PlannedRequest planned;
  const auto& manifest = model.sealed().manifest;
  if (options.inputs.empty()) {
    if (!manifest.has_golden()) {
      return absl::InvalidArgumentError(
          "the pack has no golden case to take shapes from: name its inputs");
    }
    const std::string_view bytes = model.sealed().small.at(manifest.golden().file())->bytes();
    MK_ASSIGN_OR_RETURN(planned.golden_, ReadGolden(bytes, model.signature()));
    if (planned.golden_.empty()) return absl::InvalidArgumentError("its golden file has no case");
    planned.request_ = planned.golden_[0].request;
    return planned;
  }
  for (const PlannedInput& input : options.inputs) {
    MK_ASSIGN_OR_RETURN(InputTensor tensor, ZeroInput(model.signature(), input, planned.zeros_));
    planned.request_.inputs.push_back(std::move(tensor));
  }
  for (InputTensor& tensor : planned.request_.inputs) tensor.data = planned.zeros_.data();
  MK_RETURN_IF_ERROR(ValidateRequest(model.signature(), planned.request_));
  return planned;
}

}  // namespace mk
