// One inference request and its answer, between the protocol and the pack: names, shapes and spans;
// no protobuf, no gRPC.
#ifndef MERGEKERNEL_CORE_RUN_REQUEST_H_
#define MERGEKERNEL_CORE_RUN_REQUEST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/abi/mk_pack.h"
#include "core/run/host_pool.h"

namespace mk {

struct TensorSpec {
  std::string name;
  mk_dtype dtype = MK_DTYPE_INVALID;
  std::vector<int64_t> shape;  // -1: decided by each request
  bool optional = false;
};
bool operator==(const TensorSpec& a, const TensorSpec& b);

struct Signature {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
};

using Parameter = std::variant<bool, int64_t, uint64_t, double, std::string>;
using Parameters = std::vector<std::pair<std::string, Parameter>>;

// Bytes of one input. `data` lives as long as the request's `keep_alive`, is aligned to the element
// size, may be null when `size_bytes` is 0, and is exactly as long as shape and dtype say
// (ValidateRequest has checked it).
struct InputTensor {
  std::string name;
  mk_dtype dtype = MK_DTYPE_INVALID;
  std::vector<int64_t> shape;
  const void* data = nullptr;
  uint64_t size_bytes = 0;
};

struct InferRequest {
  std::string model_name;
  std::string version_text;  // as the client wrote it; "" asks for the latest ready one
  std::string id;
  Parameters parameters;
  std::vector<InputTensor> inputs;
  std::vector<std::string> outputs;        // empty: all of them
  std::shared_ptr<const void> keep_alive;  // what `inputs[].data` points into
};

struct OutputTensor {
  std::string name;
  mk_dtype dtype = MK_DTYPE_INVALID;
  std::vector<int64_t> shape;
  HostBlock block;  // size() is the tensor's size; empty for a size of 0
};

struct InferResponse {
  std::vector<OutputTensor> outputs;  // in the request's order of outputs, else the signature's
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_RUN_REQUEST_H_
