// The reading half of the registry: look-up on the hot path, states, the index.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/loader/registry_impl.h"
#include "core/loader/sealed_pack.h"

namespace mk {

absl::Status CheckPackName(const std::string& name) {
  if (IsPlainName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model name '", Printable(name), "' must be [A-Za-z0-9_.-]{1,128} and neither '.' nor '..'"));
}

absl::Status UnknownPack(const std::string& name, int64_t version) {
  return absl::NotFoundError(
      version == 0 ? absl::StrCat("Request for unknown model: '", Printable(name), "' is not found")
                   : absl::StrCat("Request for unknown model: '", Printable(name), "' version ",
                                  version, " is not found"));
}

absl::StatusOr<GenerationHandle> RegistryImpl::Acquire(const std::string& name,
                                                       int64_t version) const {
  {
    MutexLock lock(mutex_);
    if (stopping_) return absl::UnavailableError("Server is stopping");
    const auto found = packs_.find(name);
    if (found != packs_.end()) {
      const auto& versions = found->second->versions;
      if (version != 0) {
        const auto exact = versions.find(version);
        if (exact != versions.end() && exact->second.serving) return exact->second.serving;
      } else {
        for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
          if (it->second.serving) return it->second.serving;
        }
      }
    }
  }
  // The cold path: which refusal it is depends on what stands on disk.
  MK_RETURN_IF_ERROR(CheckPackName(name));
  MK_RETURN_IF_ERROR(State(name, version).status());
  return absl::UnavailableError(
      version == 0 ? absl::StrCat("Request for model '", name, "': it is not at ready state")
                   : absl::StrCat("Request for model '", name, "' version ", version,
                                  ": it is not at ready state"));
}

absl::StatusOr<PackState> RegistryImpl::State(const std::string& name, int64_t version) const {
  MK_RETURN_IF_ERROR(CheckPackName(name));
  std::optional<PackState> state;
  {
    MutexLock lock(mutex_);
    const auto found = packs_.find(name);
    if (found != packs_.end()) {
      for (const auto& [number, known] : found->second->versions) {
        if (version != 0 && number != version) continue;
        if (known.serving) return PackState::kReady;
        if (known.passing != PackState::kUnknown) state = known.passing;
      }
    }
  }
  if (state) return *state;
  const auto on_disk = repository_->ListVersions(name);
  if (!on_disk.ok()) return UnknownPack(name, version);
  const auto& complete = on_disk->complete;
  if (version != 0 && !std::binary_search(complete.begin(), complete.end(), version)) {
    return UnknownPack(name, version);
  }
  return PackState::kUnavailable;
}

std::vector<IndexEntry> RegistryImpl::Index() const {
  std::map<std::pair<std::string, int64_t>, IndexEntry> entries;
  const auto add = [&](const std::string& name, int64_t version, PackState state,
                       std::string reason) {
    entries[{name, version}] = {name, version, state, std::move(reason)};
  };
  for (const std::string& name : repository_->Packs()) {
    const auto versions = repository_->ListVersions(name);
    if (!versions.ok()) continue;
    for (const int64_t v : versions->complete) add(name, v, PackState::kUnavailable, "not loaded");
    for (const int64_t v : versions->incomplete) {
      add(name, v, PackState::kUnavailable, "incomplete: it has no manifest");
    }
    if (versions->complete.empty() && versions->incomplete.empty()) {
      add(name, 0, PackState::kUnavailable, "no version stands in its folder");
    }
  }
  std::vector<std::shared_ptr<GenerationImpl>> serving;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, entry] : packs_) {
      for (const auto& [version, state] : entry->versions) {
        const bool known = entries.count({name, version}) != 0;
        if (state.serving) {
          add(name, version, PackState::kReady, state.reason);
          serving.push_back(state.serving);
        } else if (state.passing != PackState::kUnknown) {
          add(name, version, state.passing, state.reason);
        } else if (known && !state.reason.empty()) {
          add(name, version, PackState::kUnavailable, state.reason);
        }
      }
    }
  }
  // A file changed on disk does not touch what serves, and is told.
  for (const auto& generation : serving) {
    IndexEntry& entry = entries[{generation->name(), generation->version()}];
    const auto folder = repository_->OpenVersion(generation->name(), generation->version());
    const std::string digest = folder.ok() ? SealedPack::DigestOnDisk(folder->get()) : "";
    if (digest != generation->digest() && entry.reason.empty()) {
      entry.reason = digest.empty() ? "its files are gone from disk" : "other content on disk";
    }
  }
  std::vector<IndexEntry> list;
  for (auto& [key, entry] : entries) list.push_back(std::move(entry));
  return list;
}

std::vector<GenerationHandle> RegistryImpl::Serving() const {
  std::vector<GenerationHandle> handles;
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : packs_) {
    for (const auto& [version, state] : entry->versions) {
      if (state.serving) handles.push_back(state.serving);
    }
  }
  return handles;
}

const char* PackStateName(PackState state) {
  switch (state) {
    case PackState::kUnknown:
      return "UNKNOWN";
    case PackState::kReady:
      return "READY";
    case PackState::kUnavailable:
      return "UNAVAILABLE";
    case PackState::kLoading:
      return "LOADING";
    case PackState::kUnloading:
      return "UNLOADING";
  }
  return "UNKNOWN";
}

}  // namespace mk
