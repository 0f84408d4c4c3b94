#include "verify/scan/tensor.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/checked.h"

namespace mk::scan {
namespace {

float FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  float value = exponent == 0    ? std::ldexp(static_cast<float>(mantissa), -24)
                : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                 : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return bits & 0x8000 ? -value : value;
}

float FromBfloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

template <typename T>
bool Unpack(const std::string& raw, int64_t count, std::vector<Element>* out) {
  if (raw.size() != static_cast<size_t>(count) * sizeof(T)) return false;
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, raw.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    out->push_back(Element::Number(static_cast<double>(value)));
  }
  return true;
}

bool UnpackHalf(const std::string& raw, int64_t count, float (*convert)(uint16_t),
                std::vector<Element>* out) {
  if (raw.size() != static_cast<size_t>(count) * 2) return false;
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, raw.data() + static_cast<size_t>(i) * 2, 2);
    out->push_back(Element::Number(convert(bits)));
  }
  return true;
}

bool UnpackRaw(const onnx::TensorProto& proto, int64_t count, std::vector<Element>* out) {
  const std::string& raw = proto.raw_data();
  switch (proto.data_type()) {
    case kFloat:
      return Unpack<float>(raw, count, out);
    case kDouble:
      return Unpack<double>(raw, count, out);
    case kInt64:
      return Unpack<int64_t>(raw, count, out);
    case kInt32:
      return Unpack<int32_t>(raw, count, out);
    case kInt8:
      return Unpack<int8_t>(raw, count, out);
    case kUint8:
    case kBool:
      return Unpack<uint8_t>(raw, count, out);
    case kFloat16:
      return UnpackHalf(raw, count, FromHalf, out);
    case kBfloat16:
      return UnpackHalf(raw, count, FromBfloat, out);
    default:
      return false;
  }
}

template <typename List>
bool Take(const List& list, int64_t count, std::vector<Element>* out) {
  if (list.size() != count) return false;
  for (const auto value : list) out->push_back(Element::Number(static_cast<double>(value)));
  return true;
}

bool UnpackTyped(const onnx::TensorProto& proto, int64_t count, std::vector<Element>* out) {
  switch (proto.data_type()) {
    case kFloat:
      return Take(proto.float_data(), count, out);
    case kDouble:
      return Take(proto.double_data(), count, out);
    case kInt64:
      return Take(proto.int64_data(), count, out);
    case kInt32:
    case kInt8:
    case kUint8:
    case kBool:
      return Take(proto.int32_data(), count, out);
    default:
      return false;
  }
}

}  // namespace

Element Element::FromDim(Dim dim) {
  if (dim >= 0) return Number(static_cast<double>(dim));
  if (IsSymbol(dim)) return {0, static_cast<int32_t>(dim), kSymbol};
  return {};
}

Dim Element::AsDim() const {
  if (state == kSymbol) return symbol;
  if (state == kNumber && number >= 0 && number < 9e15 && number == std::floor(number))
    return static_cast<Dim>(number);
  return kUnknownDim;
}

bool SmallTensor::AllKnown() const {
  for (const Element& element : elements) {
    if (element.state != Element::kNumber) return false;
  }
  return true;
}

std::optional<std::vector<int64_t>> SmallTensor::Integers() const {
  std::vector<int64_t> out;
  out.reserve(elements.size());
  for (const Element& element : elements) {
    if (element.state != Element::kNumber || !(std::fabs(element.number) < 9.3e18) ||
        element.number != std::floor(element.number)) {
      return std::nullopt;
    }
    // 2^63 - 1 ("to the end") is no double: the nearest below 2^63 stands for it.
    out.push_back(element.number >= 9.2e18    ? INT64_MAX
                  : element.number <= -9.2e18 ? INT64_MIN
                                              : static_cast<int64_t>(element.number));
  }
  return out;
}

std::optional<double> SmallTensor::Scalar() const {
  if (elements.size() != 1 || elements[0].state != Element::kNumber) return std::nullopt;
  return elements[0].number;
}

std::optional<int64_t> ElementCount(const std::vector<int64_t>& dims, int64_t limit) {
  const auto count = CheckedProduct(dims);
  if (!count || *count > static_cast<uint64_t>(limit)) return std::nullopt;
  return static_cast<int64_t>(*count);
}

std::optional<SmallTensor> FromProto(const onnx::TensorProto& proto) {
  if (proto.data_location() == 1 || proto.skipped_bytes() != 0) return std::nullopt;
  SmallTensor tensor;
  tensor.type = proto.data_type();
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  const auto count = ElementCount(tensor.dims, kFoldedElements);
  if (!count) return std::nullopt;
  const bool read = proto.has_raw_data() ? UnpackRaw(proto, *count, &tensor.elements)
                                         : UnpackTyped(proto, *count, &tensor.elements);
  if (!read) return std::nullopt;
  return tensor;
}

SmallTensor MakeVector(std::vector<Element> elements) {
  SmallTensor tensor;
  tensor.type = kInt64;
  tensor.dims = {static_cast<int64_t>(elements.size())};
  tensor.elements = std::move(elements);
  return tensor;
}

SmallTensor MakeScalar(int32_t type, Element element) {
  SmallTensor tensor;
  tensor.type = type;
  tensor.elements = {element};
  return tensor;
}

}  // namespace mk::scan
