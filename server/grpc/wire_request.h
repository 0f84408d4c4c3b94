// ModelInferRequest from the bytes of the wire, without a protobuf message: raw contents stay where
// gRPC put them.
#ifndef MERGEKERNEL_SERVER_GRPC_WIRE_REQUEST_H_
#define MERGEKERNEL_SERVER_GRPC_WIRE_REQUEST_H_

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/run/host_pool.h"
#include "core/run/request.h"

namespace mk {

inline constexpr size_t kMaxTensorsPerRequest = 256;  // inputs, and outputs asked for
inline constexpr size_t kMaxParametersPerRequest = 256;
inline constexpr size_t kMaxNameBytes = 1024;  // names, ids, parameter keys

// Parses a whole message that lies in `pieces`, in order. `keep_alive` owns them.
//
// An input's data is used in place when it lies in one piece and is aligned to its elements;
// otherwise it is copied into a block of `pool`. Typed `contents` are converted into such a block.
// Fields that the protocol does not know are skipped.
//
// INVALID_ARGUMENT naming the input and the rule: malformed bytes, limits above, unknown datatypes,
// `contents` together with raw ones, fewer or more raw contents than inputs, contents of the wrong
// type or out of range, typed FP16 or BF16. UNIMPLEMENTED for shared memory and classification.
// RESOURCE_EXHAUSTED when the pool is full. What only the model's signature can tell is left to
// ValidateRequest.
absl::Status ParseInferRequest(const std::vector<std::string_view>& pieces,
                               std::shared_ptr<const void> keep_alive, HostPool& pool,
                               InferRequest* request);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_GRPC_WIRE_REQUEST_H_
