#include "core/run/validate.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace mk {
namespace {

// A client may send a shape of millions of dims; its message shows the first few.
std::string Shape(const std::vector<int64_t>& shape) {
  const size_t shown = std::min<size_t>(shape.size(), MK_MAX_RANK);
  return absl::StrCat("[",
                      absl::StrJoin(shape.begin(), shape.begin() + static_cast<long>(shown), ","),
                      shown < shape.size() ? ",..." : "", "]");
}

template <typename... Parts>
absl::Status Wrong(const InputTensor& input, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("input '", Printable(input.name), "': ", parts...));
}

absl::Status CheckShape(const TensorSpec& spec, const InputTensor& input) {
  if (input.shape.size() != spec.shape.size()) {
    return Wrong(input, "unexpected shape ", Shape(input.shape), ": rank ", input.shape.size(),
                 ", expected ", spec.shape.size(), " as in ", Shape(spec.shape));
  }
  for (size_t i = 0; i < input.shape.size(); ++i) {
    const int64_t dim = input.shape[i];
    if (dim < 0) {
      return Wrong(input, "unexpected shape ", Shape(input.shape), ": dim ", i, " is ", dim,
                   ", must be >= 0");
    }
    if (spec.shape[i] >= 0 && dim != spec.shape[i]) {
      return Wrong(input, "unexpected shape ", Shape(input.shape), ": dim ", i, " is ", dim,
                   ", expected ", spec.shape[i], " as in ", Shape(spec.shape));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckInput(const TensorSpec& spec, const InputTensor& input) {
  if (input.dtype != spec.dtype) {
    return Wrong(input, "data-type is ", std::string(DtypeName(input.dtype)), ", expected ",
                 std::string(DtypeName(spec.dtype)));
  }
  MK_RETURN_IF_ERROR(CheckShape(spec, input));
  const auto count = CheckedProduct(input.shape);
  if (!count) return Wrong(input, "shape ", Shape(input.shape), " has too many elements");
  if (spec.dtype == MK_DTYPE_BYTES) {
    return ValidatePackedBytes(input.name, input.data, input.size_bytes, *count);
  }
  const auto size = CheckedMul(*count, DtypeSize(spec.dtype));
  if (!size || *size != input.size_bytes) {
    return Wrong(input, "expected ", size ? absl::StrCat(*size) : "more than 2^64", " bytes, got ",
                 input.size_bytes);
  }
  return absl::OkStatus();
}

std::string Names(const std::vector<TensorSpec>& specs) {
  return absl::StrJoin(specs, ", ", [](std::string* out, const TensorSpec& spec) {
    absl::StrAppend(out, "'", spec.name, "'");
  });
}

absl::Status CheckOutputs(const Signature& signature, const InferRequest& request) {
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    const std::string& name = request.outputs[i];
    const bool known = std::any_of(signature.outputs.begin(), signature.outputs.end(),
                                   [&](const TensorSpec& spec) { return spec.name == name; });
    if (!known) {
      return absl::InvalidArgumentError(absl::StrCat("unknown output '", Printable(name),
                                                     "': this model's outputs are ",
                                                     Names(signature.outputs)));
    }
    if (std::find(request.outputs.begin(), request.outputs.begin() + static_cast<long>(i), name) !=
        request.outputs.begin() + static_cast<long>(i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("output '", Printable(name), "' is asked for twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidatePackedBytes(const std::string& tensor, const void* data, uint64_t size_bytes,
                                 uint64_t count) {
  const char* bytes = static_cast<const char*>(data);
  uint64_t at = 0;
  for (uint64_t element = 0; element < count; ++element) {
    uint32_t length = 0;
    if (size_bytes - at < sizeof length) {
      return absl::InvalidArgumentError(absl::StrCat("input '", Printable(tensor), "': expected ",
                                                     count, " elements, the bytes end in element ",
                                                     element));
    }
    std::memcpy(&length, bytes + at, sizeof length);
    at += sizeof length;
    if (size_bytes - at < length) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", Printable(tensor), "': element ", element, " of ", length,
                       " bytes passes the end, ", size_bytes - at, " bytes are left"));
    }
    at += length;
  }
  if (at != size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", Printable(tensor), "': ", size_bytes - at,
                     " bytes are left behind the ", count, " elements of its shape"));
  }
  return absl::OkStatus();
}

absl::Status ValidateRequest(const Signature& signature, InferRequest& request) {
  std::vector<InputTensor*> slots(signature.inputs.size(), nullptr);
  for (InputTensor& input : request.inputs) {
    size_t i = 0;
    while (i < slots.size() && signature.inputs[i].name != input.name) ++i;
    if (i == slots.size()) {
      return absl::InvalidArgumentError(absl::StrCat("unknown input '", Printable(input.name),
                                                     "': this model's inputs are ",
                                                     Names(signature.inputs)));
    }
    if (slots[i] != nullptr) return Wrong(input, "is given twice");
    slots[i] = &input;
    MK_RETURN_IF_ERROR(CheckInput(signature.inputs[i], input));
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == nullptr && !signature.inputs[i].optional) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", signature.inputs[i].name, "' is missing: expected ",
                       signature.inputs.size(), " inputs, got ", request.inputs.size()));
    }
  }
  MK_RETURN_IF_ERROR(CheckOutputs(signature, request));
  std::vector<InputTensor> ordered;
  ordered.reserve(request.inputs.size());
  for (InputTensor* slot : slots) {
    if (slot != nullptr) ordered.push_back(std::move(*slot));
  }
  request.inputs = std::move(ordered);
  return absl::OkStatus();
}

bool operator==(const TensorSpec& a, const TensorSpec& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.optional == b.optional;
}

}  // namespace mk
