// The trial of a pack in a process of its own: load, create, golden vectors, destroy, unload. A
// crash, a hang or a wrong number stays there.
#ifndef MERGEKERNEL_CORE_LOADER_PROBE_H_
#define MERGEKERNEL_CORE_LOADER_PROBE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/loader/sealed_pack.h"

namespace mk {

struct ProbeOptions {
  std::string path;             // of mergekernel-probe
  double timeout_seconds = 60;  // after it the child is killed
  int threads = 1;              // of the child's pool
  std::string device = "cpu";   // as OpenDevice takes it
  // "NAME=value": all that the child gets of the environment, for a driver that needs some.
  std::vector<std::string> environment = {};
};

// Starts mergekernel-probe by posix_spawn (the daemon is never forked) with the sealed bytes as
// descriptors and waits. OK; the child's own refusal; or INVALID_ARGUMENT saying "crashed" with the
// signal, or "hung", with the last words the child wrote. Blocks for at most the timeout. Any
// thread.
absl::Status RunProbe(const SealedPack& pack, const ProbeOptions& options);

// What the child does, in this process. On a device with graphs each golden case runs three times:
// by launches, captured, and replayed.
absl::Status TryPack(std::shared_ptr<const SealedPack> pack, int threads,
                     const std::string& device_name);

// The main function of mergekernel-probe.
int ProbeMain(int argc, char** argv);

// How the registry probes: RunProbe, or a test's own.
using ProbeFunction = std::function<absl::Status(const SealedPack&)>;

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_PROBE_H_
