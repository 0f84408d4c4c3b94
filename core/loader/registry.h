// The packs of a repository and their states: load, swap, unload, look-up. The heart of the hot
// swap.
//
// load   = read and judge the manifest > seal > probe (in a child) > dlopen > create > lanes >
// switch (one pointer) >
//          drain the old generation > unload it and prove it
// Policy: rolling. Old and new are resident together; any failure leaves the old generation serving
// and is kept as the reason of the candidate in the index.
#ifndef MERGEKERNEL_CORE_LOADER_REGISTRY_H_
#define MERGEKERNEL_CORE_LOADER_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/device/device.h"
#include "core/device/host_services.h"
#include "core/loader/executor.h"
#include "core/loader/generation.h"
#include "core/loader/probe.h"
#include "core/loader/version_policy.h"

namespace mk {

// The protocol's words (RepositoryIndex).
enum class PackState { kUnknown, kReady, kUnavailable, kLoading, kUnloading };
const char* PackStateName(PackState state);  // "READY", "UNAVAILABLE", ...

struct IndexEntry {
  std::string name;
  int64_t version = 0;  // 0: a pack of which no version is complete
  PackState state = PackState::kUnknown;
  std::string reason;  // why it is not ready, or why the last candidate of this version failed
};

struct SwapEvent {
  std::string name;
  int64_t version = 0;
  enum class Kind { kLoad, kSwap, kUnload } kind;
  absl::Status outcome;
  double seconds = 0;
  bool retired = false;  // unloaded, but the mapping could not be proven gone
};

struct RegistryOptions {
  std::string root;        // the repository; must exist
  std::string probe_path;  // mergekernel-probe
  double probe_timeout_seconds = 60;
  std::string probe_device = "cpu";            // see ProbeOptions
  std::vector<std::string> probe_environment;  // see ProbeOptions
  double drain_timeout_seconds = 30;
  VersionPolicy default_policy;
  std::string state_file;  // remembers packs that brought the daemon down; "": no quarantine
  uint64_t max_small_file_bytes = 256u << 20;
};

class Registry {
 public:
  // All references outlive the registry. `on_event` is called after each load, swap and unload, and
  // `on_state` after each change of a version's state, from the registry's threads and without its
  // lock; neither may call back into Load or Unload.
  struct Hooks {
    std::function<void(const SwapEvent&)> on_event;
    std::function<void(const std::string& name, int64_t version, PackState)> on_state;
    std::function<void(int level, const std::string& message)> log;  // 0 debug .. 3 error
  };
  // `probe` empty: mergekernel-probe at options.probe_path. Tests may bring their own.
  static absl::StatusOr<std::unique_ptr<Registry>> Create(RegistryOptions options, Device& device,
                                                          HostServices& services, HostPool& outputs,
                                                          const Clock& clock,
                                                          ExecutorFactory make_executor,
                                                          Hooks hooks,
                                                          ProbeFunction probe = nullptr);
  virtual ~Registry() = default;  // REQUIRES Shutdown(), and that no handle is held any more

  // Brings the pack to what `policy` (or, without one, the pack's last, or the default) aspires to
  // on disk now. Versions already serving the same digest are left alone. Blocks until done; any
  // thread. Loads and unloads of one pack run one after another in the order of the calls; equal
  // loads that wait at the same time are one (single-flight). INVALID_ARGUMENT for a name that is
  // no plain name, NOT_FOUND for a pack that is not in the repository, and otherwise the code of
  // the first version that failed: INVALID_ARGUMENT for a bad pack, RESOURCE_EXHAUSTED for memory,
  // with "load failed for model 'x': " and the reason per version.
  virtual absl::Status Load(const std::string& name, std::optional<VersionPolicy> policy) = 0;

  // Takes all versions of the pack out of service at once, waits for those in flight (at most the
  // drain timeout; then DEADLINE_EXCEEDED, and the unload goes on behind) and unloads. OK for a
  // known pack that is not loaded.
  virtual absl::Status Unload(const std::string& name) = 0;

  // The generation that serves; `version` 0: the highest ready one. Does not block; the hot path.
  // NOT_FOUND "Request for unknown model: 'x' ..." for an unknown pack or version; UNAVAILABLE "...
  // is not at ready state" for one that is known and not ready.
  virtual absl::StatusOr<GenerationHandle> Acquire(const std::string& name,
                                                   int64_t version) const = 0;

  // State of a pack (version 0: whether any version is ready). NOT_FOUND for an unknown one.
  virtual absl::StatusOr<PackState> State(const std::string& name, int64_t version) const = 0;

  // All that stands on disk or is loaded, by name and version. Reads the folder; may block on it.
  virtual std::vector<IndexEntry> Index() const = 0;

  // The generations that serve now, by name and version.
  virtual std::vector<GenerationHandle> Serving() const = 0;

  // Mappings that could not be proven gone, since the start.
  virtual uint64_t retired_mappings() const = 0;

  // Unloads all, newest first, each within the drain timeout. After it Acquire answers UNAVAILABLE
  // "Server is stopping", and so does a Load that was under way: what it made is unloaded and never
  // serves. Blocks; idempotent. Does not wait for such a Load: whoever called it does.
  virtual void Shutdown() = 0;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_REGISTRY_H_
