#include "server/cli/tensor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "server/cli/half.h"
#include "server/cli/text.h"

namespace mk::cli {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
T Load(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

// Calls `visit` with the element of a numeric type at `data`; half types come as float.
template <typename Visit>
auto VisitElement(mk_dtype dtype, const char* data, Visit&& visit) {
  switch (dtype) {
    case MK_DTYPE_BOOL:
      return visit(*data != 0);
    case MK_DTYPE_UINT8:
      return visit(Load<uint8_t>(data));
    case MK_DTYPE_UINT16:
      return visit(Load<uint16_t>(data));
    case MK_DTYPE_UINT32:
      return visit(Load<uint32_t>(data));
    case MK_DTYPE_UINT64:
      return visit(Load<uint64_t>(data));
    case MK_DTYPE_INT8:
      return visit(Load<int8_t>(data));
    case MK_DTYPE_INT16:
      return visit(Load<int16_t>(data));
    case MK_DTYPE_INT32:
      return visit(Load<int32_t>(data));
    case MK_DTYPE_INT64:
      return visit(Load<int64_t>(data));
    case MK_DTYPE_FP16:
      return visit(HalfToFloat(Load<uint16_t>(data)));
    case MK_DTYPE_BF16:
      return visit(BfloatToFloat(Load<uint16_t>(data)));
    case MK_DTYPE_FP64:
      return visit(Load<double>(data));
    default:  // FP32; CheckTensor has refused the rest
      return visit(Load<float>(data));
  }
}

// The double that prints as `value` does in its own precision: 0.1f is 0.1, not 0.10000000149.
double ShortestDouble(float value) {
  std::array<char, 32> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double wide = value;
  std::from_chars(text.data(), written.ptr, wide);
  return wide;
}

Json NumberJson(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return value;
}

Json ElementJson(const Tensor& tensor, uint64_t index) {
  const char* data = tensor.data.data() + index * DtypeSize(tensor.dtype);
  return VisitElement(tensor.dtype, data, [](auto value) -> Json {
    using T = decltype(value);
    if constexpr (std::is_same_v<T, float>) return NumberJson(ShortestDouble(value));
    if constexpr (std::is_same_v<T, double>) return NumberJson(value);
    return value;
  });
}

Json BytesJson(std::string_view element) {
  const Json text = std::string(element);
  // nlohmann refuses to write what is no UTF-8; the strict handler tells by throwing.
  try {
    text.dump();
    return text;
  } catch (const Json::exception&) {
    return {{"base64", absl::Base64Escape(element)}};
  }
}

template <typename T>
bool AppendNumber(std::string_view text, std::string* out) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
  return true;
}

bool AppendHalf(std::string_view text, mk_dtype dtype, std::string* out) {
  std::string wide;
  if (!AppendNumber<float>(text, &wide)) return false;
  const auto value = Load<float>(wide.data());
  const uint16_t half = dtype == MK_DTYPE_FP16 ? FloatToHalf(value) : FloatToBfloat(value);
  out->append(reinterpret_cast<const char*>(&half), sizeof half);
  return true;
}

bool AppendElement(std::string_view text, mk_dtype dtype, std::string* out) {
  switch (dtype) {
    case MK_DTYPE_BOOL:
      if (text != "0" && text != "1" && text != "true" && text != "false") return false;
      *out += text == "1" || text == "true" ? '\1' : '\0';
      return true;
    case MK_DTYPE_UINT8:
      return AppendNumber<uint8_t>(text, out);
    case MK_DTYPE_UINT16:
      return AppendNumber<uint16_t>(text, out);
    case MK_DTYPE_UINT32:
      return AppendNumber<uint32_t>(text, out);
    case MK_DTYPE_UINT64:
      return AppendNumber<uint64_t>(text, out);
    case MK_DTYPE_INT8:
      return AppendNumber<int8_t>(text, out);
    case MK_DTYPE_INT16:
      return AppendNumber<int16_t>(text, out);
    case MK_DTYPE_INT32:
      return AppendNumber<int32_t>(text, out);
    case MK_DTYPE_INT64:
      return AppendNumber<int64_t>(text, out);
    case MK_DTYPE_FP16:
    case MK_DTYPE_BF16:
      return AppendHalf(text, dtype, out);
    case MK_DTYPE_FP32:
      return AppendNumber<float>(text, out);
    case MK_DTYPE_FP64:
      return AppendNumber<double>(text, out);
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ParseShape(std::string_view text) {
  std::vector<int64_t> shape;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    MK_ASSIGN_OR_RETURN(const uint64_t dim,
                        ParseCount("dimension", part, std::numeric_limits<int64_t>::max()));
    shape.push_back(static_cast<int64_t>(dim));
    if (shape.size() > MK_MAX_RANK) return absl::InvalidArgumentError("shape: rank over 8");
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return absl::InvalidArgumentError("shape: ',' at the end");
  }
  if (!CheckedProduct(shape)) {
    return absl::InvalidArgumentError("shape " + ShapeText(shape) + ": product over 64 bits");
  }
  return shape;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

absl::StatusOr<std::string> PackBytes(std::string_view element) {
  if (element.size() > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError("BYTES element of " + std::to_string(element.size()) +
                                      " bytes > 4294967295");
  }
  const auto size = static_cast<uint32_t>(element.size());
  std::string packed(reinterpret_cast<const char*>(&size), sizeof size);
  packed += element;
  return packed;
}

absl::StatusOr<std::vector<std::string_view>> UnpackBytes(std::string_view data, uint64_t count) {
  std::vector<std::string_view> elements;
  while (!data.empty()) {
    if (data.size() < sizeof(uint32_t)) {
      return absl::InvalidArgumentError("BYTES: " + std::to_string(data.size()) +
                                        " bytes left where a length takes 4");
    }
    const auto size = Load<uint32_t>(data.data());
    data.remove_prefix(sizeof size);
    if (size > data.size()) {
      return absl::InvalidArgumentError("BYTES: element of " + std::to_string(size) +
                                        " bytes with " + std::to_string(data.size()) + " left");
    }
    elements.push_back(data.substr(0, size));
    data.remove_prefix(size);
  }
  if (elements.size() != count) {
    return absl::InvalidArgumentError("BYTES: " + std::to_string(elements.size()) +
                                      " elements where the shape asks for " +
                                      std::to_string(count));
  }
  return elements;
}

absl::StatusOr<std::string> ParseNumbers(std::string_view text, mk_dtype dtype) {
  std::string data;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    if (!AppendElement(part, dtype, &data)) {
      return absl::InvalidArgumentError("'" + std::string(part) + "' is no " +
                                        std::string(DtypeName(dtype)));
    }
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return absl::InvalidArgumentError("numbers: ',' at the end");
  }
  return data;
}

std::string RandomElements(mk_dtype dtype, uint64_t count, uint64_t seed) {
  std::string data;
  data.reserve(count * DtypeSize(dtype));
  const auto append = [&](auto value) {
    data.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (uint64_t i = 0; i < count; ++i) {
    // SplitMix64: one multiply-shift chain per counter value.
    uint64_t x = seed + (i + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    const auto unit = static_cast<float>(x >> 40) * 0x1p-23f - 1;  // [-1, 1)
    switch (dtype) {
      case MK_DTYPE_FP32:
        append(unit);
        break;
      case MK_DTYPE_FP64:
        append(static_cast<double>(unit));
        break;
      case MK_DTYPE_FP16:
        append(FloatToHalf(unit));
        break;
      case MK_DTYPE_BF16:
        append(FloatToBfloat(unit));
        break;
      case MK_DTYPE_BOOL:
        data += static_cast<char>(x & 1);
        break;
      case MK_DTYPE_UINT8:
        data += static_cast<char>(x & 0xFF);
        break;
      default:  // other integers: 0 to 127 is small in each of them
        data += static_cast<char>(x & 0x7F);
        data.append(DtypeSize(dtype) - 1, '\0');
    }
  }
  return data;
}

double ElementAsDouble(const Tensor& tensor, uint64_t index) {
  const char* data = tensor.data.data() + index * DtypeSize(tensor.dtype);
  return VisitElement(tensor.dtype, data, [](auto value) { return static_cast<double>(value); });
}

absl::Status CheckTensor(const Tensor& tensor) {
  const std::string who = "tensor " + tensor.name + ": ";
  const auto count = CheckedProduct(tensor.shape);
  if (!count) return absl::InvalidArgumentError(who + "shape " + ShapeText(tensor.shape));
  if (tensor.dtype == MK_DTYPE_BYTES) {
    const auto elements = UnpackBytes(tensor.data, *count);
    return elements.ok() ? absl::OkStatus()
                         : absl::InvalidArgumentError(who + std::string(elements.status().message()));
  }
  if (DtypeSize(tensor.dtype) == 0) return absl::InvalidArgumentError(who + "unknown datatype");
  const auto size = CheckedMul(*count, DtypeSize(tensor.dtype));
  if (!size || *size != tensor.data.size()) {
    return absl::InvalidArgumentError(who + std::string(DtypeName(tensor.dtype)) + " " +
                                      ShapeText(tensor.shape) + " with " +
                                      std::to_string(tensor.data.size()) + " bytes of data");
  }
  return absl::OkStatus();
}

Json TensorJson(const Tensor& tensor) {
  Json values = Json::array();
  const uint64_t count = *CheckedProduct(tensor.shape);
  if (tensor.dtype == MK_DTYPE_BYTES) {
    for (const auto element : *UnpackBytes(tensor.data, count)) values.push_back(BytesJson(element));
  } else {
    for (uint64_t i = 0; i < count; ++i) values.push_back(ElementJson(tensor, i));
  }
  return {{"name", tensor.name},
          {"datatype", std::string(DtypeName(tensor.dtype))},
          {"shape", tensor.shape},
          {"data", std::move(values)}};
}

std::string TensorText(const Tensor& tensor, uint64_t limit) {
  const uint64_t count = *CheckedProduct(tensor.shape);
  std::string text;
  if (tensor.dtype == MK_DTYPE_BYTES) {
    const auto elements = *UnpackBytes(tensor.data, count);
    for (uint64_t i = 0; i < std::min(count, limit); ++i) {
      text += (i ? " \"" : "\"") + ForTerminal(elements[i].substr(0, 80)) +
              (elements[i].size() > 80 ? "...\"" : "\"");
    }
  } else {
    for (uint64_t i = 0; i < std::min(count, limit); ++i) {
      const Json element = ElementJson(tensor, i);
      text += (i ? " " : "") + (element.is_string() ? element.get<std::string>() : element.dump());
    }
  }
  return count > limit ? text + " ... (" + std::to_string(count) + " in all)" : text;
}

}  // namespace mk::cli
