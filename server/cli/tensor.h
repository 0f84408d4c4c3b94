// Tensors as the wire carries them (raw, little-endian; BYTES packed) and as people write and read
// them. Pure.
#ifndef MERGEKERNEL_SERVER_CLI_TENSOR_H_
#define MERGEKERNEL_SERVER_CLI_TENSOR_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/abi/mk_pack.h"

namespace mk::cli {

struct Tensor {
  std::string name;
  mk_dtype dtype = MK_DTYPE_INVALID;
  std::vector<int64_t> shape;
  std::string data;  // product(shape) elements; BYTES: (uint32 length, bytes) each
};

// "1,3,224,224" (or "" for a scalar) to dims >= 0, at most 8 of them. INVALID_ARGUMENT otherwise.
absl::StatusOr<std::vector<int64_t>> ParseShape(std::string_view text);
std::string ShapeText(const std::vector<int64_t>& shape);  // "[1,3,224,224]"

// One BYTES element as packed. INVALID_ARGUMENT above 4 GiB - 1.
absl::StatusOr<std::string> PackBytes(std::string_view element);

// The elements of a packed BYTES tensor; views into `data`. INVALID_ARGUMENT when the lengths do not
// add up to exactly `count` elements and all of the data.
absl::StatusOr<std::vector<std::string_view>> UnpackBytes(std::string_view data, uint64_t count);

// "1,2.5,-3" to raw elements of a numeric type. INVALID_ARGUMENT names the number that does not fit.
absl::StatusOr<std::string> ParseNumbers(std::string_view text, mk_dtype dtype);

// `count` elements of a numeric type, pseudo-random from `seed`: floating point in [-1, 1), integers
// small. The same on every machine.
std::string RandomElements(mk_dtype dtype, uint64_t count, uint64_t seed);

// Element `index` of a numeric tensor as a double. REQUIRES: the data holds it.
double ElementAsDouble(const Tensor& tensor, uint64_t index);

// Whether shape, type and data agree; INVALID_ARGUMENT says how not.
absl::Status CheckTensor(const Tensor& tensor);

// {"name", "datatype", "shape", "data": [...]}, flat and row-major. What JSON has no number for is a
// string: "NaN", "Infinity", "-Infinity". BYTES are strings where they are UTF-8, else
// {"base64": "..."}. REQUIRES: CheckTensor.
nlohmann::ordered_json TensorJson(const Tensor& tensor);

// At most `limit` elements for people, with "... (N in all)" behind when there are more.
std::string TensorText(const Tensor& tensor, uint64_t limit);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_TENSOR_H_
