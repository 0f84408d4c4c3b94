#include "server/grpc/request_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/loader/version_policy.h"

namespace mk {
namespace {

absl::StatusOr<int64_t> Integer(const std::string& key, const Parameter& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  const auto* wide = std::get_if<uint64_t>(&value);
  if (wide != nullptr && *wide <= INT64_MAX) return static_cast<int64_t>(*wide);
  return absl::InvalidArgumentError(absl::StrCat("parameter '", key, "' must be an integer"));
}

// Whether a sequence parameter says anything: 0, "" and false are "no sequence".
bool SaysSomething(const Parameter& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number != 0;
  if (const auto* wide = std::get_if<uint64_t>(&value)) return *wide != 0;
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr || !text->empty();
}

}  // namespace

absl::StatusOr<RequestOptions> TakeReservedParameters(Parameters* parameters) {
  RequestOptions options;
  Parameters left;
  for (auto& [key, value] : *parameters) {
    if (key == "timeout") {
      MK_ASSIGN_OR_RETURN(options.timeout_us, Integer(key, value));
      if (options.timeout_us < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("parameter 'timeout' ", options.timeout_us, " must be >= 0 microseconds"));
      }
    } else if (key == "sequence_id" || key == "sequence_start" || key == "sequence_end") {
      if (SaysSomething(value)) {
        return absl::UnimplementedError(
            absl::StrCat("parameter '", key, "': this model has no sequences"));
      }
    } else if (key == "priority") {
      MK_RETURN_IF_ERROR(Integer(key, value).status());
    } else if (key == "headers" || key.rfind("binary_data", 0) == 0 ||
               key == "triton_enable_empty_final_response") {
      // Meant for HTTP or for streams; has no effect here.
    } else if (key.rfind("triton_", 0) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter '", Printable(key, 80), "' is unknown; 'triton_' is reserved"));
    } else {
      left.emplace_back(std::move(key), std::move(value));
    }
  }
  *parameters = std::move(left);
  return options;
}

absl::StatusOr<int64_t> ParseRequestedVersion(const std::string& model, const std::string& text) {
  if (text.empty()) return 0;
  absl::StatusOr<int64_t> version = ParseVersion(text);
  if (version.ok()) return version;
  const bool digits =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (digits) {
    return absl::NotFoundError(absl::StrCat("Request for unknown model: '", Printable(model),
                                            "' version ", Printable(text, 40), " is not found"));
  }
  return version.status();
}

bool IsLocalPeer(std::string_view peer) {
  if (peer.substr(0, 5) == "unix:") return true;
  // Newer gRPC escapes the brackets.
  const std::string plain = absl::StrReplaceAll(absl::string_view(peer.data(), peer.size()),
                                                {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  const std::string_view text = plain;
  if (text.substr(0, 5) == "ipv4:") return text.substr(5, 4) == "127.";
  if (text.substr(0, 6) != "ipv6:[") return false;
  const std::string_view address = text.substr(6, text.find(']') - 6);
  return address == "::1" || address.substr(0, 11) == "::ffff:127.";
}

}  // namespace mk
