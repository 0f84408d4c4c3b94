// ModelInferResponse to the wire, without a copy of large outputs; and what belongs to a refusal.
#ifndef MERGEKERNEL_SERVER_GRPC_WIRE_RESPONSE_H_
#define MERGEKERNEL_SERVER_GRPC_WIRE_RESPONSE_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/run/request.h"

namespace mk {

// Large outputs become slices of their own, which give their block back when gRPC has written them.
grpc::ByteBuffer WriteInferResponse(const std::string& model, int64_t version,
                                    const std::string& id, InferResponse response);

// The same code and message. An UNAVAILABLE one carries google.rpc.RetryInfo of `retry_ms` in its
// details.
grpc::Status ToGrpc(const absl::Status& status, int64_t retry_ms = 50);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_GRPC_WIRE_RESPONSE_H_
