// A small tensor whose elements may be known in part: what constant folding works on. A shape
// vector such as [batch, 8, 7, ?] keeps its numbers, its symbol and its unknown apart.
#ifndef MERGEKERNEL_VERIFY_SCAN_TENSOR_H_
#define MERGEKERNEL_VERIFY_SCAN_TENSOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "verify/scan/onnx.pb.h"

namespace mk::scan {

// Element types, by their numbers in the ONNX IR.
enum ElementType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
};
inline bool IsComplex(int32_t type) { return type == kComplex64 || type == kComplex128; }
inline bool IsReal(int32_t type) {
  return type == kFloat || type == kFloat16 || type == kDouble || type == kBfloat16;
}

// A dimension: its size when >= 0; kUnknownDim; or a symbol (Symbol(id), id >= 0).
using Dim = int64_t;
constexpr Dim kUnknownDim = -1;
inline Dim Symbol(int64_t id) { return -2 - id; }
inline bool IsSymbol(Dim dim) { return dim <= -2; }
using Dims = std::vector<Dim>;

// One element: a number, or a symbol that stands for a dimension, or nothing known.
struct Element {
  enum State : uint8_t { kUnknown, kNumber, kSymbol };
  double number = 0;   // exact for all integers up to 2^53
  int32_t symbol = 0;  // a Dim that IsSymbol
  State state = kUnknown;

  static Element Number(double value) { return {value, 0, kNumber}; }
  static Element FromDim(Dim dim);
  Dim AsDim() const;  // kUnknownDim where it is no dimension
  bool operator==(const Element& other) const {
    return state == other.state && state != kUnknown &&
           (state == kNumber ? number == other.number : symbol == other.symbol);
  }
};

// The largest tensor that is folded, in elements.
constexpr int64_t kFoldedElements = 65'536;

struct SmallTensor {
  int32_t type = kUndefined;
  std::vector<int64_t> dims;  // all >= 0
  std::vector<Element> elements;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  bool AllKnown() const;
  // The integers of a tensor whose elements are all known integers.
  std::optional<std::vector<int64_t>> Integers() const;
  // The only element, when there is one and it is a number.
  std::optional<double> Scalar() const;
};

// The number of elements of `dims`; nothing when one is not known, or above `limit`.
std::optional<int64_t> ElementCount(const std::vector<int64_t>& dims, int64_t limit);

// The contents of `proto`, where they were kept, fit its shape and are numbers.
std::optional<SmallTensor> FromProto(const onnx::TensorProto& proto);

SmallTensor MakeVector(std::vector<Element> elements);
SmallTensor MakeScalar(int32_t type, Element element);

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_TENSOR_H_
