// The registry's state, shared by its two halves: registry.cc changes it (load, swap, unload),
// registry_lookup.cc reads it (the hot path, states, the index).
#ifndef MERGEKERNEL_CORE_LOADER_REGISTRY_IMPL_H_
#define MERGEKERNEL_CORE_LOADER_REGISTRY_IMPL_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/loader/generation_impl.h"
#include "core/loader/quarantine.h"
#include "core/loader/registry.h"
#include "core/loader/repository.h"
#include "core/loader/turnstile.h"

namespace mk {

// INVALID_ARGUMENT for a name that no pack can have.
absl::Status CheckPackName(const std::string& name);
// NOT_FOUND in the protocol's words; `version` 0: the pack as a whole.
absl::Status UnknownPack(const std::string& name, int64_t version);

// What is known of one version beyond what stands on disk.
struct VersionState {
  std::shared_ptr<GenerationImpl> serving;
  PackState passing = PackState::kUnknown;  // kLoading, kUnloading while that is under way
  std::string reason;                       // of the last failure
};

struct PackEntry {
  Turnstile turnstile;
  std::optional<VersionPolicy> policy;       // touched only behind the turnstile
  std::map<int64_t, VersionState> versions;  // guarded by the registry's mutex
};

class RegistryImpl : public Registry {
 public:
  RegistryImpl(RegistryOptions options, std::unique_ptr<Repository> repository, Device& device,
               HostServices& services, HostPool& outputs, const Clock& clock,
               ExecutorFactory make_executor, Hooks hooks, ProbeFunction probe)
      : options_(std::move(options)),
        repository_(std::move(repository)),
        device_(device),
        services_(services),
        outputs_(outputs),
        clock_(clock),
        make_executor_(std::move(make_executor)),
        hooks_(std::move(hooks)),
        probe_(std::move(probe)),
        quarantine_(options_.state_file, clock_),
        reaper_(std::make_shared<Reaper>(
            [this](const Reaper::Unloaded& unloaded) { OnUnloaded(unloaded); })) {}

  ~RegistryImpl() override { Shutdown(); }

  absl::Status Load(const std::string& name, std::optional<VersionPolicy> policy) override;
  absl::Status Unload(const std::string& name) override;
  absl::StatusOr<GenerationHandle> Acquire(const std::string& name, int64_t version) const override;
  absl::StatusOr<PackState> State(const std::string& name, int64_t version) const override;
  std::vector<IndexEntry> Index() const override;
  std::vector<GenerationHandle> Serving() const override;
  uint64_t retired_mappings() const override { return retired_.load(); }
  void Shutdown() override;

 private:
  struct Replaced {
    uint64_t id;
    std::string name;
    int64_t version;
  };

  absl::StatusOr<std::shared_ptr<PackEntry>> Entry(const std::string& name) MK_EXCLUDES(mutex_);
  absl::Status DoLoad(const std::string& name, PackEntry& entry, const VersionPolicy& policy);
  absl::Status LoadVersion(const std::string& name, PackEntry& entry, int64_t version,
                           std::vector<Replaced>& replaced);
  absl::StatusOr<std::unique_ptr<GenerationImpl>> MakeGeneration(const std::string& name,
                                                                 int64_t version,
                                                                 const std::string& serving_digest);
  absl::Status Admit(const mergekernel::v1::Manifest& manifest) const;
  absl::Status WarmUp(GenerationImpl& generation);
  // The switch. UNAVAILABLE when the registry is stopping: the generation is unloaded then.
  absl::Status Publish(PackEntry& entry, int64_t version,
                       std::shared_ptr<GenerationImpl> generation, std::vector<Replaced>& replaced)
      MK_EXCLUDES(mutex_);
  absl::Status CheckNotStopping() const MK_EXCLUDES(mutex_);
  // Takes versions out of service; those not in `keep` (all, when it is null).
  void Withdraw(PackEntry& entry, const std::set<int64_t>* keep, std::vector<Replaced>& replaced)
      MK_EXCLUDES(mutex_);
  bool WaitUnloaded(const std::vector<Replaced>& replaced);
  void SetState(PackEntry& entry, const std::string& name, int64_t version, PackState passing,
                const std::string* reason) MK_EXCLUDES(mutex_);
  void OnUnloaded(const Reaper::Unloaded& unloaded) MK_EXCLUDES(mutex_);
  void Log(int level, const std::string& message) const {
    if (hooks_.log) hooks_.log(level, message);
  }
  void Event(SwapEvent event) const {
    if (hooks_.on_event) hooks_.on_event(event);
  }
  void StateChanged(const std::string& name, int64_t version, PackState state) const {
    if (hooks_.on_state) hooks_.on_state(name, version, state);
  }

  const RegistryOptions options_;
  const std::unique_ptr<Repository> repository_;
  Device& device_;
  HostServices& services_;
  HostPool& outputs_;
  const Clock& clock_;
  const ExecutorFactory make_executor_;
  const Hooks hooks_;
  const ProbeFunction probe_;
  Quarantine quarantine_;
  std::atomic<uint64_t> next_id_{1};
  std::atomic<uint64_t> retired_{0};

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<PackEntry>> packs_ MK_GUARDED_BY(mutex_);
  bool stopping_ MK_GUARDED_BY(mutex_) = false;

  std::shared_ptr<Reaper> reaper_;  // last: it calls back into the members above
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_REGISTRY_IMPL_H_
