// Golden vectors: inputs and the answers they must give, run before a pack may serve.
//
// A safetensors file with tensors `case<k>.input.<name>` and `case<k>.output.<name>`, k from 0
// without gaps.
#ifndef MERGEKERNEL_CORE_LOADER_GOLDEN_H_
#define MERGEKERNEL_CORE_LOADER_GOLDEN_H_

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/run/request.h"

namespace mk {

struct GoldenCase {
  InferRequest
      request;  // validated; its data points into the golden file's bytes or into `keep_alive`
  std::vector<InputTensor> outputs;  // what must come out, in any order
};

// INVALID_ARGUMENT naming the tensor for a file that does not parse or fit the signature. `bytes`
// outlives the cases.
absl::StatusOr<std::vector<GoldenCase>> ReadGolden(std::string_view bytes,
                                                   const Signature& signature);

// FAILED_PRECONDITION naming case, tensor, rel_l2 and the worst index (got, want) when an output is
// off: floating-point tensors by rel_l2 <= max_rel_l2 with NaN and infinity in the same places, all
// others exactly.
absl::Status CompareGolden(size_t index, const GoldenCase& golden, const InferResponse& response,
                           double max_rel_l2);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_GOLDEN_H_
