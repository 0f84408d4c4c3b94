#include "core/config/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace mk {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
// The kernel wants room for the closing NUL.
constexpr size_t kMaxUnixPath = sizeof(sockaddr_un::sun_path) - 1;

absl::Status Refuse(std::string_view text, const std::string& rule) {
  return absl::InvalidArgumentError(absl::StrCat("address \"", Printable(text), "\": ", rule));
}

absl::StatusOr<int> ParsePort(std::string_view text, std::string_view digits) {
  int port = 0;
  // Five digits hold every port, so `port` cannot overflow.
  const bool plain =
      !digits.empty() && digits.size() <= 5 &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (plain) {
    for (const char c : digits) port = port * 10 + (c - '0');
  }
  if (!plain || port > 65535) return Refuse(text, "the port must be a number from 0 to 65535");
  return port;
}

bool IsHostName(std::string_view host) {
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-';
  });
}

// Digits and dots alone are meant as an address, so they must be one.
bool IsBrokenIpv4(const std::string& host) {
  if (host.find_first_not_of("0123456789.") != std::string::npos) return false;
  in_addr parsed;
  return inet_pton(AF_INET, host.c_str(), &parsed) != 1;
}

absl::StatusOr<Address> ParseUnix(std::string_view text) {
  const std::string_view path = text.substr(kUnixPrefix.size());
  if (path.empty()) return Refuse(text, "a path must follow \"unix:\"");
  if (path.size() > kMaxUnixPath) {
    return Refuse(text,
                  absl::StrCat("the path has ", path.size(), " bytes, more than ", kMaxUnixPath));
  }
  if (path.find('\0') != std::string_view::npos) return Refuse(text, "the path has a NUL byte");
  Address address;
  address.kind = Address::Kind::kUnix;
  address.path = std::string(path);
  return address;
}

}  // namespace

absl::StatusOr<Address> ParseAddress(std::string_view text) {
  if (text.substr(0, kUnixPrefix.size()) == kUnixPrefix) return ParseUnix(text);
  Address address;
  if (!text.empty() && text.front() == '[') {
    const size_t close = text.find("]:");
    if (close == std::string_view::npos) {
      return Refuse(text, "an IPv6 address must be written \"[address]:port\"");
    }
    address.host = std::string(text.substr(1, close - 1));
    in6_addr parsed;
    // A NUL inside would hide the rest from inet_pton.
    if (address.host.find('\0') != std::string::npos ||
        inet_pton(AF_INET6, address.host.c_str(), &parsed) != 1) {
      return Refuse(text, "what stands in brackets is not an IPv6 address");
    }
    MK_ASSIGN_OR_RETURN(address.port, ParsePort(text, text.substr(close + 2)));
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return Refuse(text, "must be \"host:port\", \"[ipv6]:port\" or \"unix:/path\"");
  }
  address.host = std::string(text.substr(0, colon));
  if (!IsHostName(address.host)) {
    return Refuse(text,
                  "the host must be an IPv4 address or a name of letters, digits, '-' and '.' "
                  "(an IPv6 address stands in brackets)");
  }
  if (IsBrokenIpv4(address.host)) return Refuse(text, "the host is not an IPv4 address");
  MK_ASSIGN_OR_RETURN(address.port, ParsePort(text, text.substr(colon + 1)));
  return address;
}

}  // namespace mk
