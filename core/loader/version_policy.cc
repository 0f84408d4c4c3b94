#include "core/loader/version_policy.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace mk {

absl::StatusOr<int64_t> ParseVersion(std::string_view text) {
  int64_t version = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || text[0] == '0' ||
      !absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &version)) {
    return absl::InvalidArgumentError(
        absl::StrCat("version '", Printable(text, 40), "' is no integer > 0 in plain digits"));
  }
  return version;
}

absl::StatusOr<VersionPolicy> ParseVersionPolicy(std::string_view text) {
  const absl::string_view view(text.data(), text.size());
  VersionPolicy policy;
  if (view == "latest") return policy;
  if (view == "all") {
    policy.kind = VersionPolicy::Kind::kAll;
    return policy;
  }
  if (view.substr(0, 7) == "latest:") {
    if (absl::SimpleAtoi(view.substr(7), &policy.latest) && policy.latest >= 1) return policy;
  } else {
    policy.kind = VersionPolicy::Kind::kSpecific;
    bool good = true;
    for (absl::string_view part : absl::StrSplit(view, ',')) {
      const auto version = ParseVersion(std::string_view(part.data(), part.size()));
      good = good && version.ok();
      if (good) policy.versions.push_back(*version);
    }
    std::sort(policy.versions.begin(), policy.versions.end());
    policy.versions.erase(std::unique(policy.versions.begin(), policy.versions.end()),
                          policy.versions.end());
    if (good) return policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("version_policy '", Printable(text, 80),
                   "' is none of \"latest\", \"latest:N\" (N >= 1), \"all\", \"1,3,10\""));
}

std::string ToString(const VersionPolicy& policy) {
  switch (policy.kind) {
    case VersionPolicy::Kind::kLatest:
      return absl::StrCat("latest:", policy.latest);
    case VersionPolicy::Kind::kAll:
      return "all";
    case VersionPolicy::Kind::kSpecific:
      return absl::StrJoin(policy.versions, ",");
  }
  return "";
}

absl::StatusOr<std::vector<int64_t>> AspiredVersions(const VersionPolicy& policy,
                                                     std::vector<int64_t> on_disk) {
  std::sort(on_disk.begin(), on_disk.end());
  if (on_disk.empty()) return absl::NotFoundError("no version stands in the repository");
  if (policy.kind == VersionPolicy::Kind::kSpecific) {
    for (const int64_t version : policy.versions) {
      if (!std::binary_search(on_disk.begin(), on_disk.end(), version)) {
        return absl::NotFoundError(
            absl::StrCat("version ", version, " does not stand in the repository"));
      }
    }
    return policy.versions;
  }
  const size_t wanted = policy.kind == VersionPolicy::Kind::kAll
                            ? on_disk.size()
                            : static_cast<size_t>(policy.latest);
  if (on_disk.size() > wanted) {
    on_disk.erase(on_disk.begin(), on_disk.end() - static_cast<long>(wanted));
  }
  return on_disk;
}

}  // namespace mk
