// What a request asks beyond its tensors, and who may ask what: pure functions over names,
// parameters and peers.
#ifndef MERGEKERNEL_SERVER_GRPC_REQUEST_OPTIONS_H_
#define MERGEKERNEL_SERVER_GRPC_REQUEST_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/run/request.h"

namespace mk {

// The protocol's reserved parameters of one request.
struct RequestOptions {
  int64_t timeout_us = 0;  // 0: none
};

// Takes the reserved parameters out of `parameters`; the rest is the pack's. INVALID_ARGUMENT for a
// wrong type or value and for unknown `triton_*` keys; UNIMPLEMENTED for sequences, which no pack
// of this build offers. `priority` and `headers` are taken and have no effect.
absl::StatusOr<RequestOptions> TakeReservedParameters(Parameters* parameters);

// "" is 0, the latest. A canonical integer > 0 is itself. Other digits ("0", "010") are NOT_FOUND:
// no version is called so. Anything else is INVALID_ARGUMENT.
absl::StatusOr<int64_t> ParseRequestedVersion(const std::string& model, const std::string& text);

// Whether gRPC's name of a peer is of this machine: the loopback, IPv4, IPv6 or mapped, or a Unix
// socket.
bool IsLocalPeer(std::string_view peer);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_GRPC_REQUEST_OPTIONS_H_
