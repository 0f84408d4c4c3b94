// Which versions of a pack should serve, given what stands on disk: a pure function.
#ifndef MERGEKERNEL_CORE_LOADER_VERSION_POLICY_H_
#define MERGEKERNEL_CORE_LOADER_VERSION_POLICY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mk {

struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  int latest = 1;                 // kLatest: how many of the highest
  std::vector<int64_t> versions;  // kSpecific, ascending
};

// "latest", "latest:N", "all", or "1,3,10". INVALID_ARGUMENT naming the text and the rule.
absl::StatusOr<VersionPolicy> ParseVersionPolicy(std::string_view text);
std::string ToString(const VersionPolicy& policy);

// A folder's name as a version: canonical decimal digits, > 0, no sign, no leading zero, fits
// int64. Nothing otherwise
// ("03", "v4", "11.tmp": field case B13).
absl::StatusOr<int64_t> ParseVersion(std::string_view text);

// The versions to serve, ascending, compared as numbers. NOT_FOUND naming the version when a
// specific one is absent, or when there is none at all.
absl::StatusOr<std::vector<int64_t>> AspiredVersions(const VersionPolicy& policy,
                                                     std::vector<int64_t> on_disk);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_VERSION_POLICY_H_
