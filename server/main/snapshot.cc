#include "server/main/snapshot.h"

#include <string>
#include <utility>

#include "core/base/version.h"
#include "core/metrics/process_facts.h"
#include "server/main/daemon.h"

namespace mk {
namespace {

GenerationSnapshot Describe(const Generation& generation) {
  GenerationSnapshot out;
  out.pack = generation.name();
  out.version = generation.version();
  out.generation = generation.id();
  out.digest = generation.digest();
  out.load_seconds = generation.load_seconds();
  out.queued = generation.executor().queued();
  out.running = generation.executor().running();
  for (int i = 0; i < kRegionCount; ++i) {
    const auto region = static_cast<Region>(i);
    const MemoryAccount& memory = generation.memory();
    out.regions.push_back({std::string(RegionName(region)), memory.live(region),
                           memory.peak(region), memory.declared(region)});
  }
  return out;
}

}  // namespace

DaemonSnapshot TakeSnapshot(const SnapshotSources& sources, bool ready) {
  DaemonSnapshot out;
  out.version = kVersion;
  out.device_kind = sources.device.facts().kind;
  out.device_name = sources.device.facts().name;
  out.device_budget_bytes = sources.device.facts().budget_bytes;
  out.device_in_use_bytes = sources.device.in_use_bytes();
  out.host_pool_in_use_bytes = sources.pool.in_use_bytes();
  out.host_pool_limit_bytes = sources.pool.limit_bytes();
  const QueueLoad load = sources.admission.load();
  out.queue_requests = load.requests;
  out.queue_bytes = load.bytes;
  out.retired_mappings = sources.registry.retired_mappings();
  out.unknown_model_requests = sources.stats.unknown_model.load();
  out.ready = ready;
  out.uptime_seconds = static_cast<double>(sources.clock.NowNs() - sources.started_ns) * 1e-9;
  const ProcessFacts facts = ReadProcessFacts();
  out.resident_bytes = facts.resident_bytes;
  out.cpu_memory_total_bytes = facts.cpu_memory_total_bytes;
  out.cpu_memory_used_bytes = facts.cpu_memory_used_bytes;
  out.models = sources.stats.Snapshot();
  out.swaps = sources.stats.Swaps();
  for (const GenerationHandle& generation : sources.registry.Serving()) {
    out.generations.push_back(Describe(*generation));
  }
  return out;
}

}  // namespace mk
