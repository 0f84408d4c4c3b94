// Every metric family of the daemon, in one place: snapshots in, Prometheus families out. Pure.
#ifndef MERGEKERNEL_CORE_METRICS_FAMILIES_H_
#define MERGEKERNEL_CORE_METRICS_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/metrics/model_stats.h"

namespace mk {

struct RegionBytes {
  std::string region;  // "weights", "scratch", "state"
  uint64_t live = 0;
  uint64_t peak = 0;
  uint64_t declared = 0;
};

struct GenerationSnapshot {
  std::string pack;
  int64_t version = 0;
  uint64_t generation = 0;
  std::string digest;
  double load_seconds = 0;
  uint64_t queued = 0;
  uint64_t running = 0;
  std::vector<RegionBytes> regions;
};

struct DaemonSnapshot {
  std::string version;      // of the daemon
  std::string device_kind;  // "cpu"
  std::string device_name;
  uint64_t device_budget_bytes = 0;
  uint64_t device_in_use_bytes = 0;
  uint64_t host_pool_in_use_bytes = 0;
  uint64_t host_pool_limit_bytes = 0;
  uint64_t queue_requests = 0;  // over all packs
  uint64_t queue_bytes = 0;
  uint64_t retired_mappings = 0;
  uint64_t unknown_model_requests = 0;
  uint64_t scrape_errors = 0;  // scrapes that could not be answered in full
  bool ready = false;
  double uptime_seconds = 0;
  uint64_t resident_bytes = 0;  // of the process; 0: not known, so left out
  uint64_t cpu_memory_total_bytes = 0;
  uint64_t cpu_memory_used_bytes = 0;  // total - MemAvailable
  std::vector<ModelStatsSnapshot> models;
  std::vector<SwapSnapshot> swaps;
  std::vector<GenerationSnapshot> generations;
};

// Several generations of one version (an old one that drains, a new one that serves) share its
// series: waiting and running requests are added up, peaks are the larger, the rest is the
// newest's.
//
// mergekernel_* in base units, then the nv_* names that existing dashboards and perf_analyzer read.
// What is not known is an absent series, not a zero. docs/metrics.md lists them all; a test keeps
// the two equal.
std::vector<prometheus::MetricFamily> Families(const DaemonSnapshot& snapshot);

// The one family of a scrape that failed: how many did.
std::vector<prometheus::MetricFamily> ScrapeErrorFamilies(uint64_t scrape_errors);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_METRICS_FAMILIES_H_
