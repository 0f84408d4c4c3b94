#include "core/metrics/families.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/metrics/family_list.h"
#include "core/metrics/model_stats.h"

namespace mk {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

void FamilyList::Begin(const char* name, MetricType type, const char* help) {
  if (!families_.empty() && families_.back().metric.empty()) families_.pop_back();
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  families_.push_back(std::move(family));
}

ClientMetric& FamilyList::AddSeries(const Labels& labels) {
  std::vector<ClientMetric>& series = families_.back().metric;
  series.emplace_back();
  for (const auto& [name, value] : labels) {
    series.back().label.push_back({name, Printable(value)});
  }
  return series.back();
}

void FamilyList::Add(const Labels& labels, double value) {
  ClientMetric& series = AddSeries(labels);
  if (families_.back().type == MetricType::Counter) {
    series.counter.value = value;
  } else {
    series.gauge.value = value;
  }
}

void FamilyList::Add(const Labels& labels, const HistogramSnapshot& histogram) {
  ClientMetric::Histogram& out = AddSeries(labels).histogram;
  out.sample_count = histogram.count;
  out.sample_sum = static_cast<double>(histogram.sum_ns) * 1e-9;
  uint64_t cumulative = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    cumulative += histogram.counts[i];
    const double bound =
        i < kLatencyBuckets.size() ? kLatencyBuckets[i] : std::numeric_limits<double>::infinity();
    out.bucket.push_back({cumulative, bound});
  }
}

std::vector<MetricFamily> FamilyList::Take() {
  if (!families_.empty() && families_.back().metric.empty()) families_.pop_back();
  return std::move(families_);
}

VersionViews MergeGenerations(const std::vector<GenerationSnapshot>& generations) {
  VersionViews views;
  for (const GenerationSnapshot& generation : generations) {
    VersionView& view = views[{generation.pack, generation.version}];
    const bool newest = generation.generation >= view.generation;
    if (newest) {
      view.generation = generation.generation;
      view.load_seconds = generation.load_seconds;
    }
    view.queued += generation.queued;
    view.running += generation.running;
    for (const RegionBytes& region : generation.regions) {
      RegionBytes& merged = view.regions[region.region];
      merged.peak = std::max(merged.peak, region.peak);
      if (newest) merged.declared = region.declared;
    }
  }
  return views;
}

namespace {

Labels OfModel(const ModelStatsSnapshot& model) {
  return {{"pack", model.pack}, {"version", std::to_string(model.version)}};
}

Labels OfVersion(const VersionViews::value_type& entry) {
  return {{"pack", entry.first.first}, {"version", std::to_string(entry.first.second)}};
}

Labels OfGeneration(const GenerationSnapshot& generation) {
  return {{"pack", generation.pack},
          {"version", std::to_string(generation.version)},
          {"generation", std::to_string(generation.generation)}};
}

Labels With(Labels labels, const char* name, const std::string& value) {
  labels.emplace_back(name, value);
  return labels;
}

void AddRequests(const DaemonSnapshot& snapshot, FamilyList& list) {
  list.Begin("mergekernel_requests_total", MetricType::Counter,
             "Requests answered, by outcome: ok, invalid, rejected, expired, cancelled, failed.");
  for (const ModelStatsSnapshot& model : snapshot.models) {
    for (int i = 0; i < kOutcomeCount; ++i) {
      list.Add(With(OfModel(model), "outcome", OutcomeName(static_cast<Outcome>(i))),
               static_cast<double>(model.outcomes[i]));
    }
  }
  list.Begin("mergekernel_request_stage_seconds", MetricType::Histogram,
             "Time that requests spent in a stage (queue, input, run, output), and in all "
             "(request), of all requests that reached it.");
  for (const ModelStatsSnapshot& model : snapshot.models) {
    for (int i = 0; i < kStageCount; ++i) {
      list.Add(With(OfModel(model), "stage", StageName(static_cast<Stage>(i))), model.stages[i]);
    }
  }
  list.Begin("mergekernel_requests_in_flight", MetricType::Gauge,
             "Requests received and not answered yet.");
  for (const ModelStatsSnapshot& model : snapshot.models) {
    list.Add(OfModel(model), static_cast<double>(model.in_flight));
  }
  list.One("mergekernel_unknown_model_requests_total", MetricType::Counter,
           "Requests that named no pack of the repository.",
           static_cast<double>(snapshot.unknown_model_requests));
}

void AddQueues(const DaemonSnapshot& snapshot, const VersionViews& versions, FamilyList& list) {
  list.Begin("mergekernel_queue_requests", MetricType::Gauge, "Requests that wait for a lane.");
  for (const auto& entry : versions) {
    list.Add(OfVersion(entry), static_cast<double>(entry.second.queued));
  }
  list.Begin("mergekernel_running_requests", MetricType::Gauge, "Requests on a lane.");
  for (const auto& entry : versions) {
    list.Add(OfVersion(entry), static_cast<double>(entry.second.running));
  }
  list.One("mergekernel_all_queues_requests", MetricType::Gauge,
           "Requests that wait for a lane, over all packs.",
           static_cast<double>(snapshot.queue_requests));
  list.One("mergekernel_all_queues_bytes", MetricType::Gauge,
           "Input bytes of the requests that wait for a lane, over all packs.",
           static_cast<double>(snapshot.queue_bytes));
}

void AddMemory(const DaemonSnapshot& snapshot, const VersionViews& versions, FamilyList& list) {
  list.Begin("mergekernel_memory_live_bytes", MetricType::Gauge,
             "Device memory that a generation of a pack holds now, by region: weights, scratch, "
             "state.");
  for (const GenerationSnapshot& generation : snapshot.generations) {
    for (const RegionBytes& region : generation.regions) {
      list.Add(With(OfGeneration(generation), "region", region.region),
               static_cast<double>(region.live));
    }
  }
  list.Begin("mergekernel_memory_peak_bytes", MetricType::Gauge,
             "The most device memory that was held at once since the load, by region.");
  for (const auto& entry : versions) {
    for (const auto& [name, region] : entry.second.regions) {
      list.Add(With(OfVersion(entry), "region", name), static_cast<double>(region.peak));
    }
  }
  list.Begin("mergekernel_memory_declared_bytes", MetricType::Gauge,
             "The bound that the pack's manifest states, by region; more is refused.");
  for (const auto& entry : versions) {
    for (const auto& [name, region] : entry.second.regions) {
      list.Add(With(OfVersion(entry), "region", name), static_cast<double>(region.declared));
    }
  }
}

void AddLoads(const DaemonSnapshot& snapshot, const VersionViews& versions, FamilyList& list) {
  list.Begin("mergekernel_generation_info", MetricType::Gauge,
             "1 for each generation in memory, with its digest (SHA-256 of the manifest).");
  for (const GenerationSnapshot& generation : snapshot.generations) {
    list.Add(With(OfGeneration(generation), "digest", generation.digest), 1);
  }
  list.Begin("mergekernel_load_seconds", MetricType::Gauge,
             "How long the load of the newest generation took, from the order to the switch.");
  for (const auto& entry : versions) list.Add(OfVersion(entry), entry.second.load_seconds);
  const auto labels = [](const SwapSnapshot& swap) -> Labels {
    return {{"pack", swap.pack}, {"kind", swap.kind}, {"outcome", swap.outcome}};
  };
  list.Begin("mergekernel_swaps_total", MetricType::Counter,
             "Loads, swaps and unloads, by kind and outcome (ok, failed).");
  for (const SwapSnapshot& swap : snapshot.swaps) {
    list.Add(labels(swap), static_cast<double>(swap.count));
  }
  list.Begin("mergekernel_swap_seconds_total", MetricType::Counter,
             "Time spent in loads, swaps and unloads, by kind and outcome.");
  for (const SwapSnapshot& swap : snapshot.swaps) {
    list.Add(labels(swap), static_cast<double>(swap.sum_ns) * 1e-9);
  }
  list.One("mergekernel_retired_mappings_total", MetricType::Counter,
           "Unloaded packs whose library could not be proven unmapped.",
           static_cast<double>(snapshot.retired_mappings));
}

void AddDaemon(const DaemonSnapshot& snapshot, FamilyList& list) {
  list.One("mergekernel_device_budget_bytes", MetricType::Gauge,
           "The most that all packs together may take on the device.",
           static_cast<double>(snapshot.device_budget_bytes));
  list.One("mergekernel_device_in_use_bytes", MetricType::Gauge,
           "Device memory taken now, by all packs and their lanes.",
           static_cast<double>(snapshot.device_in_use_bytes));
  list.One("mergekernel_host_pool_limit_bytes", MetricType::Gauge,
           "The most that answers on their way out may take.",
           static_cast<double>(snapshot.host_pool_limit_bytes));
  list.One("mergekernel_host_pool_in_use_bytes", MetricType::Gauge,
           "Host memory of answers on their way out.",
           static_cast<double>(snapshot.host_pool_in_use_bytes));
  list.One("mergekernel_ready", MetricType::Gauge,
           "1 when the device answers and the daemon takes requests, else 0.",
           snapshot.ready ? 1 : 0);
  list.One("mergekernel_uptime_seconds", MetricType::Gauge, "Time since the daemon started.",
           snapshot.uptime_seconds);
  if (snapshot.resident_bytes != 0) {
    list.One("mergekernel_process_resident_bytes", MetricType::Gauge,
             "Resident memory of the daemon's process.",
             static_cast<double>(snapshot.resident_bytes));
  }
  list.Begin("mergekernel_build_info", MetricType::Gauge, "1, with the daemon's version.");
  list.Add({{"version", snapshot.version}}, 1);
  list.Begin("mergekernel_device_info", MetricType::Gauge,
             "1, with the device's kind (cpu, cuda) and name.");
  list.Add({{"kind", snapshot.device_kind}, {"name", snapshot.device_name}}, 1);
}

void AddScrapeErrors(uint64_t scrape_errors, FamilyList& list) {
  list.One("mergekernel_scrape_errors_total", MetricType::Counter,
           "Scrapes that could not be answered in full.", static_cast<double>(scrape_errors));
}

}  // namespace

std::vector<MetricFamily> Families(const DaemonSnapshot& snapshot) {
  const VersionViews versions = MergeGenerations(snapshot.generations);
  FamilyList list;
  AddRequests(snapshot, list);
  AddQueues(snapshot, versions, list);
  AddMemory(snapshot, versions, list);
  AddLoads(snapshot, versions, list);
  AddDaemon(snapshot, list);
  AddScrapeErrors(snapshot.scrape_errors, list);
  AddNvFamilies(snapshot, versions, list);
  return list.Take();
}

std::vector<MetricFamily> ScrapeErrorFamilies(uint64_t scrape_errors) {
  FamilyList list;
  AddScrapeErrors(scrape_errors, list);
  return list.Take();
}

}  // namespace mk
