#include "core/loader/golden.h"

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/dtype.h"
#include "core/base/half.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/run/validate.h"
#include "core/weights/convert.h"
#include "core/weights/safetensors.h"

namespace mk {
namespace {

constexpr size_t kMaxCases = 1024;

mk_dtype DtypeOf(StoredType type) {
  for (mk_dtype dtype = MK_DTYPE_BOOL; dtype < MK_DTYPE_BYTES; ++dtype) {
    // FP32 takes several stored types; only F32 itself is one.
    if (dtype == MK_DTYPE_FP32 ? type == StoredType::kF32 : Converts(type, dtype)) return dtype;
  }
  return MK_DTYPE_INVALID;
}

double ElementAsDouble(mk_dtype dtype, const char* data, size_t i) {
  if (dtype == MK_DTYPE_FP64) {
    double value;
    std::memcpy(&value, data + i * 8, 8);
    return value;
  }
  if (dtype == MK_DTYPE_FP32) {
    float value;
    std::memcpy(&value, data + i * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, data + i * 2, 2);
  return dtype == MK_DTYPE_FP16 ? HalfToFloat(bits) : BFloat16ToFloat(bits);
}

bool IsFloat(mk_dtype dtype) {
  return dtype == MK_DTYPE_FP64 || dtype == MK_DTYPE_FP32 || dtype == MK_DTYPE_FP16 ||
         dtype == MK_DTYPE_BF16;
}

template <typename... Parts>
absl::Status Off(size_t index, const std::string& tensor, const Parts&... parts) {
  return absl::FailedPreconditionError(
      absl::StrCat("golden case ", index, ", output '", tensor, "': ", parts...));
}

absl::Status CompareFloats(size_t index, const InputTensor& want, const char* got_data,
                           double max_rel_l2) {
  const char* want_data = static_cast<const char*>(want.data);
  const size_t count = want.size_bytes / DtypeSize(want.dtype);
  double error = 0, norm = 0, worst = -1;
  size_t worst_index = 0;
  for (size_t i = 0; i < count; ++i) {
    const double g = ElementAsDouble(want.dtype, got_data, i);
    const double w = ElementAsDouble(want.dtype, want_data, i);
    if (!std::isfinite(g) || !std::isfinite(w)) {
      if ((std::isnan(g) && std::isnan(w)) || g == w) continue;
      return Off(index, want.name, "index ", i, " is ", g, ", must be ", w);
    }
    error += (g - w) * (g - w);
    norm += w * w;
    if (std::fabs(g - w) > worst) worst = std::fabs(g - w), worst_index = i;
  }
  const double rel_l2 = std::sqrt(error) / (norm > 0 ? std::sqrt(norm) : 1);
  if (rel_l2 <= max_rel_l2) return absl::OkStatus();
  return Off(index, want.name, "rel_l2 ", rel_l2, " > ", max_rel_l2, "; worst at index ",
             worst_index, ": ", ElementAsDouble(want.dtype, got_data, worst_index), ", must be ",
             ElementAsDouble(want.dtype, want_data, worst_index));
}

}  // namespace

absl::StatusOr<std::vector<GoldenCase>> ReadGolden(std::string_view bytes,
                                                   const Signature& signature) {
  MK_ASSIGN_OR_RETURN(const SafetensorsView view, SafetensorsView::Parse(bytes));
  std::map<size_t, GoldenCase> cases;
  for (const StoredTensor& stored : view.header().tensors) {
    const size_t dot = stored.name.find('.');
    const std::string rest = dot == stored.name.npos ? "" : stored.name.substr(dot + 1);
    size_t index = 0;
    const bool input = rest.rfind("input.", 0) == 0, output = rest.rfind("output.", 0) == 0;
    if (stored.name.rfind("case", 0) != 0 || !(input || output) ||
        !absl::SimpleAtoi(stored.name.substr(4, dot - 4), &index) || index >= kMaxCases) {
      return absl::InvalidArgumentError(
          absl::StrCat("golden: tensor '", Printable(stored.name, 80),
                       "' is not called case<k>.input.<name> or case<k>.output.<name>"));
    }
    const std::string_view data = view.Data(stored);
    // Copied to be aligned.
    auto aligned = std::make_shared<std::vector<char>>(data.begin(), data.end());
    GoldenCase& golden = cases[index];
    auto& tensors = input ? golden.request.inputs : golden.outputs;
    tensors.push_back({rest.substr(input ? 6 : 7), DtypeOf(stored.type), stored.shape,
                       aligned->data(), aligned->size()});
    auto previous = std::exchange(golden.request.keep_alive, nullptr);
    golden.request.keep_alive =
        std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
            std::move(previous), std::move(aligned));
  }
  std::vector<GoldenCase> list;
  for (auto& [index, golden] : cases) {
    if (index != list.size()) {
      return absl::InvalidArgumentError(absl::StrCat("golden: case ", list.size(), " is missing"));
    }
    if (golden.outputs.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("golden: case ", index, " has no output to compare"));
    }
    const absl::Status status = ValidateRequest(signature, golden.request);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("golden case ", index, ": ", status.message()));
    }
    list.push_back(std::move(golden));
  }
  if (list.empty()) return absl::InvalidArgumentError("golden: the file has no case");
  return list;
}

absl::Status CompareGolden(size_t index, const GoldenCase& golden, const InferResponse& response,
                           double max_rel_l2) {
  for (const InputTensor& want : golden.outputs) {
    const OutputTensor* got = nullptr;
    for (const OutputTensor& output : response.outputs) {
      if (output.name == want.name) got = &output;
    }
    if (got == nullptr) return Off(index, want.name, "is no output of this model");
    if (got->dtype != want.dtype || got->shape != want.shape) {
      return Off(index, want.name, "differs in type or shape");
    }
    const char* data = static_cast<const char*>(got->block.data());
    if (IsFloat(want.dtype)) {
      MK_RETURN_IF_ERROR(CompareFloats(index, want, data, max_rel_l2));
    } else if (want.size_bytes != 0 && std::memcmp(data, want.data, want.size_bytes) != 0) {
      size_t i = 0;
      while (data[i] == static_cast<const char*>(want.data)[i]) ++i;
      return Off(index, want.name, "differs first at byte ", i);
    }
  }
  return absl::OkStatus();
}

}  // namespace mk
