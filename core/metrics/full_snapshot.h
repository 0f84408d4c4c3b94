// For tests: a snapshot in which everything is known, so that every family has a series.
#ifndef MERGEKERNEL_CORE_METRICS_FULL_SNAPSHOT_H_
#define MERGEKERNEL_CORE_METRICS_FULL_SNAPSHOT_H_

#include "core/metrics/families.h"
#include "core/metrics/model_stats.h"

namespace mk {

inline DaemonSnapshot FullSnapshot() {
  DaemonSnapshot snapshot;
  snapshot.version = "0.1.0";
  snapshot.device_kind = "cpu";
  snapshot.device_name = "A CPU";
  snapshot.device_budget_bytes = 1000;
  snapshot.device_in_use_bytes = 900;
  snapshot.host_pool_in_use_bytes = 10;
  snapshot.host_pool_limit_bytes = 100;
  snapshot.queue_requests = 3;
  snapshot.queue_bytes = 300;
  snapshot.retired_mappings = 1;
  snapshot.unknown_model_requests = 2;
  snapshot.scrape_errors = 4;
  snapshot.ready = true;
  snapshot.uptime_seconds = 12.5;
  snapshot.resident_bytes = 5000;
  snapshot.cpu_memory_total_bytes = 8000;
  snapshot.cpu_memory_used_bytes = 6000;

  ModelStats stats;
  const auto record = [&stats](Outcome outcome, int64_t run_ns, int64_t total_ns) {
    stats.Begin();
    RequestRecord record;
    record.outcome = outcome;
    record.stage_ns = {40'000, run_ns < 0 ? -1 : 3000, run_ns, run_ns < 0 ? -1 : 5000, total_ns};
    record.unix_ms = 1;
    stats.Record(record);
  };
  record(Outcome::kOk, 2'000'000, 2'050'000);
  record(Outcome::kOk, 50'000, 100'000);
  record(Outcome::kInvalid, -1, 60'000);
  record(Outcome::kRejected, -1, 60'000);
  record(Outcome::kRejected, -1, 60'000);
  record(Outcome::kExpired, -1, 60'000);
  record(Outcome::kCancelled, -1, 60'000);
  record(Outcome::kFailed, 1000, 60'000);
  stats.Begin();
  snapshot.models.push_back(stats.Snapshot());
  snapshot.models.back().pack = "echo";
  snapshot.models.back().version = 7;

  snapshot.swaps.push_back({"echo", "load", "ok", 2, 1'500'000'000});
  snapshot.swaps.push_back({"echo", "swap", "failed", 1, 250'000'000});

  // The generation that drains and the one that serves, of one version.
  GenerationSnapshot old_one;
  old_one.pack = "echo";
  old_one.version = 7;
  old_one.generation = 1;
  old_one.digest = "aa";
  old_one.load_seconds = 1;
  old_one.queued = 1;
  old_one.running = 1;
  old_one.regions = {{"weights", 10, 10, 16}, {"scratch", 0, 30, 32}, {"state", 0, 0, 0}};
  GenerationSnapshot new_one = old_one;
  new_one.generation = 2;
  new_one.digest = "bb";
  new_one.load_seconds = 0.5;
  new_one.queued = 2;
  new_one.regions = {{"weights", 12, 12, 18}, {"scratch", 4, 20, 40}, {"state", 0, 0, 0}};
  snapshot.generations = {new_one, old_one};
  return snapshot;
}

}  // namespace mk

#endif  // MERGEKERNEL_CORE_METRICS_FULL_SNAPSHOT_H_
