// The changing half of the registry: load, swap, unload, shutdown.
#include "core/loader/registry.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/loader/generation_impl.h"
#include "core/loader/golden.h"
#include "core/loader/manifest.h"
#include "core/loader/rate_limited_log.h"
#include "core/loader/registry_impl.h"
#include "core/loader/repository.h"

namespace mk {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

absl::StatusOr<std::shared_ptr<PackEntry>> RegistryImpl::Entry(const std::string& name) {
  MK_RETURN_IF_ERROR(CheckPackName(name));
  const bool on_disk = repository_->Has(name);
  MutexLock lock(mutex_);
  if (stopping_) return absl::UnavailableError("Server is stopping");
  const auto found = packs_.find(name);
  if (found != packs_.end()) return found->second;
  if (!on_disk) return UnknownPack(name, 0);
  return packs_[name] = std::make_shared<PackEntry>();
}

absl::Status RegistryImpl::CheckNotStopping() const {
  MutexLock lock(mutex_);
  return stopping_ ? absl::UnavailableError("Server is stopping") : absl::OkStatus();
}

absl::Status RegistryImpl::Load(const std::string& name, std::optional<VersionPolicy> policy) {
  MK_ASSIGN_OR_RETURN(const std::shared_ptr<PackEntry> entry, Entry(name));
  std::shared_ptr<Turnstile::Pass> pass;
  const std::string what = absl::StrCat("load ", policy ? ToString(*policy) : "");
  if (auto joined = entry->turnstile.Enter(what, &pass)) return *joined;
  absl::Status status = CheckNotStopping();  // it may have come while this call waited its turn
  if (status.ok()) {
    const std::optional<VersionPolicy> before = entry->policy;
    if (policy) entry->policy = policy;
    status = DoLoad(name, *entry, entry->policy ? *entry->policy : options_.default_policy);
    // A wish that could not be met is not the next load's wish too.
    if (!status.ok()) entry->policy = before;
  }
  entry->turnstile.Leave(*pass, status);
  return status;
}

absl::Status RegistryImpl::DoLoad(const std::string& name, PackEntry& entry,
                                  const VersionPolicy& policy) {
  MK_ASSIGN_OR_RETURN(const Repository::Versions on_disk, repository_->ListVersions(name));
  if (!on_disk.ignored.empty()) {
    Log(1, absl::StrCat("pack ", name,
                        ": ignored, since no version: ", absl::StrJoin(on_disk.ignored, ", ")));
  }
  const absl::StatusOr<std::vector<int64_t>> aspired = AspiredVersions(policy, on_disk.complete);
  if (!aspired.ok()) {
    return absl::Status(aspired.status().code(), absl::StrCat("load failed for model '", name,
                                                              "': ", aspired.status().message()));
  }
  std::vector<Replaced> replaced;
  absl::Status first;
  std::vector<std::string> reasons;
  for (const int64_t version : *aspired) {
    const absl::Status status = LoadVersion(name, entry, version, replaced);
    if (status.ok()) continue;
    if (first.ok()) first = status;
    reasons.push_back(absl::StrCat("version ", version, ": ", status.message()));
  }
  // Rolling: what is not wanted any more goes only when all that is wanted has come.
  if (first.ok()) {
    const std::set<int64_t> keep(aspired->begin(), aspired->end());
    Withdraw(entry, &keep, replaced);
  }
  if (!WaitUnloaded(replaced)) {
    Log(2, absl::StrCat("pack ", name, ": an old generation still drains after the drain timeout"));
  }
  if (first.ok()) return first;
  return absl::Status(first.code(), absl::StrCat("load failed for model '", name,
                                                 "': ", absl::StrJoin(reasons, "; ")));
}

absl::Status RegistryImpl::LoadVersion(const std::string& name, PackEntry& entry, int64_t version,
                                       std::vector<Replaced>& replaced) {
  const auto begin = std::chrono::steady_clock::now();
  std::string serving_digest;
  {
    MutexLock lock(mutex_);
    VersionState& state = entry.versions[version];
    if (state.serving) serving_digest = state.serving->digest();
  }
  SetState(entry, name, version, PackState::kLoading, nullptr);
  absl::StatusOr<std::unique_ptr<GenerationImpl>> made =
      MakeGeneration(name, version, serving_digest);
  const bool swap = !serving_digest.empty();
  const bool unchanged = made.ok() && *made == nullptr;
  absl::Status status = made.status();
  if (made.ok() && !unchanged) {
    (*made)->set_load_seconds(SecondsSince(begin));
    status = Publish(entry, version, Reaper::Wrap(reaper_, *std::move(made)), replaced);
  }
  const std::string reason(status.message());
  SetState(entry, name, version, PackState::kUnknown, &reason);
  if (!unchanged) {
    Log(status.ok() ? 1 : 3, absl::StrCat("pack ", name, " version ", version,
                                          status.ok() ? ": ready" : ": load failed: ", reason));
    Event({name, version, swap ? SwapEvent::Kind::kSwap : SwapEvent::Kind::kLoad, status,
           SecondsSince(begin), false});
  }
  return status;
}

// Null when what stands on disk is what serves already.
absl::StatusOr<std::unique_ptr<GenerationImpl>> RegistryImpl::MakeGeneration(
    const std::string& name, int64_t version, const std::string& serving_digest) {
  MK_ASSIGN_OR_RETURN(const Fd folder, repository_->OpenVersion(name, version));
  const uint64_t id = next_id_.fetch_add(1);
  MK_ASSIGN_OR_RETURN(std::shared_ptr<const SealedPack> sealed,
                      SealedPack::Read(folder.get(), name, version, options_.max_small_file_bytes,
                                       absl::StrCat("mk-", name, "-", version, "-g", id)));
  if (sealed->digest == serving_digest) return nullptr;
  if (quarantine_.Holds(sealed->digest)) {
    return absl::FailedPreconditionError(
        "quarantined: the daemon ended while this content was on trial; install other content, or "
        "delete the daemon's quarantine file and restart it");
  }
  MK_RETURN_IF_ERROR(Admit(sealed->manifest));
  MK_RETURN_IF_ERROR(probe_(*sealed));
  MK_RETURN_IF_ERROR(CheckNotStopping());  // the probe may have taken long
  quarantine_.BeginTrial(id, sealed->digest);
  const auto failed = [&](absl::Status status) {
    quarantine_.EndTrial(id);
    return status;
  };
  const std::string labels_file = sealed->manifest.labels_file();
  std::string labels(labels_file.empty() ? "" : sealed->small.at(labels_file)->bytes());
  auto model =
      LoadedModel::Create(std::move(sealed), device_, services_, RateLimited(hooks_.log, clock_));
  if (!model.ok()) return failed(model.status());
  auto generation = std::make_unique<GenerationImpl>(id, device_, *std::move(model),
                                                     std::move(labels), clock_.UnixMillis());
  absl::StatusOr<std::unique_ptr<Executor>> executor = make_executor_(*generation);
  absl::Status status = executor.status();
  if (executor.ok()) {
    generation->set_executor(*std::move(executor));
    status = WarmUp(*generation);
  }
  if (!status.ok()) {
    bool retired = false;
    const absl::Status unload = generation->Unload(&retired);
    if (!unload.ok()) Log(2, absl::StrCat("pack ", name, ": ", unload.message()));
    if (retired) retired_.fetch_add(1);
    return failed(status);
  }
  quarantine_.Served(id);
  return generation;
}

absl::Status RegistryImpl::Admit(const mergekernel::v1::Manifest& manifest) const {
  const auto& memory = manifest.memory();
  // The manifest's limits keep this far from overflow.
  const uint64_t needed = memory.weights_bytes() + ScratchBytesOn(manifest, device_.facts().kind) *
                                                       static_cast<uint64_t>(LanesOf(manifest));
  const uint64_t budget = device_.facts().budget_bytes, in_use = device_.in_use_bytes();
  if (in_use <= budget && needed <= budget - in_use) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the pack declares ", needed, " bytes of device memory; ", in_use, " of ",
                   budget, " are in use, and the old generation stays until the new one serves"));
}

// One request through the real lanes, so that the first client does not pay for what happens once.
absl::Status RegistryImpl::WarmUp(GenerationImpl& generation) {
  if (!generation.manifest().has_golden()) return absl::OkStatus();
  const std::string_view bytes = generation.golden_bytes();
  MK_ASSIGN_OR_RETURN(std::vector<GoldenCase> cases, ReadGolden(bytes, generation.signature()));
  Mutex mutex;
  CondVar changed;
  std::optional<absl::Status> result;
  auto job = std::make_unique<Job>();
  job->request = std::move(cases[0].request);
  job->stop = std::make_shared<StopSignal>();
  // As long as the probe had for the same.
  job->stop->deadline_ns =
      clock_.NowNs() + static_cast<int64_t>(options_.probe_timeout_seconds * 1e9);
  job->done = [&](Job&, absl::StatusOr<InferResponse> response) {
    MutexLock lock(mutex);
    result = response.ok()
                 ? CompareGolden(0, cases[0], *response,
                                 GoldenToleranceOn(generation.manifest(), device_.facts().kind))
                 : response.status();
    changed.NotifyAll();
  };
  generation.executor().Submit(std::move(job));
  MutexLock lock(mutex);
  while (!result) changed.Wait(mutex);
  return *result;
}

absl::Status RegistryImpl::Publish(PackEntry& entry, int64_t version,
                                   std::shared_ptr<GenerationImpl> generation,
                                   std::vector<Replaced>& replaced) {
  std::shared_ptr<GenerationImpl> old;  // released outside of the lock
  absl::Status status;
  {
    MutexLock lock(mutex_);
    if (stopping_) {
      // Shutdown has passed by: nobody would withdraw it any more.
      status = absl::UnavailableError("Server is stopping");
      old = std::move(generation);
    } else {
      old = std::exchange(entry.versions[version].serving, std::move(generation));
    }
  }
  if (old) replaced.push_back({old->id(), old->name(), version});
  return status;
}

void RegistryImpl::Withdraw(PackEntry& entry, const std::set<int64_t>* keep,
                            std::vector<Replaced>& replaced) {
  std::vector<std::shared_ptr<GenerationImpl>> old;
  {
    MutexLock lock(mutex_);
    for (auto& [version, state] : entry.versions) {
      if (!state.serving || (keep && keep->count(version))) continue;
      state.passing = PackState::kUnloading;
      old.push_back(std::exchange(state.serving, nullptr));
    }
  }
  for (const auto& generation : old) {
    StateChanged(generation->name(), generation->version(), PackState::kUnloading);
    replaced.push_back({generation->id(), generation->name(), generation->version()});
  }
}

bool RegistryImpl::WaitUnloaded(const std::vector<Replaced>& replaced) {
  const auto timeout =
      std::chrono::nanoseconds(static_cast<int64_t>(options_.drain_timeout_seconds * 1e9));
  const auto end = std::chrono::steady_clock::now() + timeout;
  bool all = true;
  for (const Replaced& old : replaced) {
    const auto left = end - std::chrono::steady_clock::now();
    all = reaper_->WaitFor(old.id, std::max(left, std::chrono::nanoseconds(0))) && all;
  }
  return all;
}

absl::Status RegistryImpl::Unload(const std::string& name) {
  MK_ASSIGN_OR_RETURN(const std::shared_ptr<PackEntry> entry, Entry(name));
  std::shared_ptr<Turnstile::Pass> pass;
  if (auto joined = entry->turnstile.Enter("unload", &pass)) return *joined;
  std::vector<Replaced> replaced;
  Withdraw(*entry, nullptr, replaced);
  absl::Status status;
  if (!WaitUnloaded(replaced)) {
    status = absl::DeadlineExceededError(
        absl::StrCat("model '", name, "' is out of service, and requests still run on it after ",
                     options_.drain_timeout_seconds, " s; the unload goes on behind"));
  }
  entry->turnstile.Leave(*pass, status);
  return status;
}

void RegistryImpl::SetState(PackEntry& entry, const std::string& name, int64_t version,
                            PackState passing, const std::string* reason) {
  PackState seen;
  {
    MutexLock lock(mutex_);
    VersionState& state = entry.versions[version];
    state.passing = passing;
    if (reason) state.reason = *reason;
    seen = state.serving ? PackState::kReady
                         : (passing == PackState::kUnknown ? PackState::kUnavailable : passing);
  }
  StateChanged(name, version, seen);
}

void RegistryImpl::OnUnloaded(const Reaper::Unloaded& unloaded) {
  quarantine_.EndTrial(unloaded.id);
  if (unloaded.retired) retired_.fetch_add(1);
  bool gone = false;
  {
    MutexLock lock(mutex_);
    const auto found = packs_.find(unloaded.name);
    if (found != packs_.end()) {
      VersionState& state = found->second->versions[unloaded.version];
      if (state.passing == PackState::kUnloading) {
        state.passing = PackState::kUnknown;
        state.reason = "unloaded";
      }
      gone = !state.serving;
    }
  }
  Log(unloaded.status.ok() ? 1 : 3,
      absl::StrCat("pack ", unloaded.name, " version ", unloaded.version, ": unloaded",
                   unloaded.status.ok() ? "" : absl::StrCat(": ", unloaded.status.message())));
  if (gone) StateChanged(unloaded.name, unloaded.version, PackState::kUnavailable);
  Event({unloaded.name, unloaded.version, SwapEvent::Kind::kUnload, unloaded.status,
         unloaded.seconds, unloaded.retired});
}

void RegistryImpl::Shutdown() {
  std::vector<std::shared_ptr<GenerationImpl>> all;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    for (auto& [name, entry] : packs_) {
      for (auto& [version, state] : entry->versions) {
        if (state.serving) all.push_back(std::exchange(state.serving, nullptr));
      }
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->id() > b->id(); });
  std::vector<Replaced> replaced;
  for (auto& generation : all) {
    replaced.push_back({generation->id(), generation->name(), generation->version()});
    generation.reset();
  }
  if (!WaitUnloaded(replaced)) Log(2, "requests still run after the drain timeout");
}

absl::StatusOr<std::unique_ptr<Registry>> Registry::Create(RegistryOptions options, Device& device,
                                                           HostServices& services,
                                                           HostPool& outputs, const Clock& clock,
                                                           ExecutorFactory make_executor,
                                                           Hooks hooks, ProbeFunction probe) {
  MK_ASSIGN_OR_RETURN(std::unique_ptr<Repository> repository, Repository::Open(options.root));
  if (!probe) {
    if (options.probe_path.empty()) {
      return absl::InvalidArgumentError("registry: probe_path is empty");
    }
    ProbeOptions probe_options;
    probe_options.path = options.probe_path;
    probe_options.timeout_seconds = options.probe_timeout_seconds;
    probe_options.device = options.probe_device;
    probe_options.environment = options.probe_environment;
    probe = [probe_options](const SealedPack& pack) { return RunProbe(pack, probe_options); };
  }
  return std::unique_ptr<Registry>(std::make_unique<RegistryImpl>(
      std::move(options), std::move(repository), device, services, outputs, clock,
      std::move(make_executor), std::move(hooks), std::move(probe)));
}

}  // namespace mk
