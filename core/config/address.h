// Addresses to listen on, as operators write them.
#ifndef MERGEKERNEL_CORE_CONFIG_ADDRESS_H_
#define MERGEKERNEL_CORE_CONFIG_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace mk {

struct Address {
  enum class Kind { kTcp, kUnix };
  Kind kind = Kind::kTcp;
  std::string host;  // kTcp: without brackets
  int port = 0;      // kTcp: 0 asks for a free one
  std::string path;  // kUnix
};

// "host:port", "[ipv6]:port" or "unix:PATH". A host is an IPv4 address or a name ([A-Za-z0-9.-]);
// an IPv6 address stands in brackets; a port is 0 to 65535 in plain digits; a path is at most 107
// bytes, which is what a socket's name holds. Nothing is looked up. INVALID_ARGUMENT with the text
// and the rule it breaks.
absl::StatusOr<Address> ParseAddress(std::string_view text);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_CONFIG_ADDRESS_H_
