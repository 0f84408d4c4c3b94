// The names that dashboards for Triton and perf_analyzer read, over the same counts. Their units
// and their habit of counters without `_total` are kept, since that is what makes them of use.
#include <prometheus/metric_type.h>

#include <cstdint>
#include <string>

#include "core/metrics/families.h"
#include "core/metrics/family_list.h"
#include "core/metrics/model_stats.h"

namespace mk {
namespace {

using prometheus::MetricType;

Labels OfModel(const std::string& name, int64_t version) {
  return {{"model", name}, {"version", std::to_string(version)}};
}

uint64_t Count(const ModelStatsSnapshot& model, Outcome outcome) {
  return model.outcomes[static_cast<size_t>(outcome)];
}

const HistogramSnapshot& At(const ModelStatsSnapshot& model, Stage stage) {
  return model.stages[static_cast<size_t>(stage)];
}

// One counter with a value per model.
template <typename Value>
void PerModel(const DaemonSnapshot& snapshot, FamilyList& list, const char* name, const char* help,
              Value value) {
  list.Begin(name, MetricType::Counter, help);
  for (const ModelStatsSnapshot& model : snapshot.models) {
    list.Add(OfModel(model.pack, model.version), static_cast<double>(value(model)));
  }
}

void AddFailures(const DaemonSnapshot& snapshot, FamilyList& list) {
  list.Begin("nv_inference_request_failure", MetricType::Counter,
             "Requests without an answer, by reason: REJECTED (queue full, or the deadline "
             "passed), CANCELED, BACKEND (the pack failed), OTHER (the request was wrong).");
  for (const ModelStatsSnapshot& model : snapshot.models) {
    const auto add = [&](const char* reason, uint64_t count) {
      Labels labels = OfModel(model.pack, model.version);
      labels.emplace_back("reason", reason);
      list.Add(labels, static_cast<double>(count));
    };
    add("REJECTED", Count(model, Outcome::kRejected) + Count(model, Outcome::kExpired));
    add("CANCELED", Count(model, Outcome::kCancelled));
    add("BACKEND", Count(model, Outcome::kFailed));
    add("OTHER", Count(model, Outcome::kInvalid));
  }
}

void AddDurations(const DaemonSnapshot& snapshot, FamilyList& list) {
  PerModel(snapshot, list, "nv_inference_request_duration_us",
           "Time of successful requests from arrival to answer, in microseconds.",
           [](const ModelStatsSnapshot& model) { return model.success_ns / 1000; });
  const auto stage = [&](const char* name, const char* help, Stage which) {
    PerModel(snapshot, list, name, help,
             [which](const ModelStatsSnapshot& model) { return At(model, which).sum_ns / 1000; });
  };
  stage("nv_inference_queue_duration_us",
        "Time that requests waited for a lane, in microseconds, failed ones included.",
        Stage::kQueue);
  stage("nv_inference_compute_input_duration_us",
        "Time spent on bringing in inputs, in microseconds.", Stage::kInput);
  stage("nv_inference_compute_infer_duration_us", "Time spent in packs, in microseconds.",
        Stage::kRun);
  stage("nv_inference_compute_output_duration_us",
        "Time spent on bringing out outputs, in microseconds.", Stage::kOutput);
}

}  // namespace

void AddNvFamilies(const DaemonSnapshot& snapshot, const VersionViews& versions, FamilyList& list) {
  const auto successes = [](const ModelStatsSnapshot& model) { return Count(model, Outcome::kOk); };
  PerModel(snapshot, list, "nv_inference_request_success", "Requests answered.", successes);
  AddFailures(snapshot, list);
  PerModel(snapshot, list, "nv_inference_count", "Inferences that succeeded.", successes);
  PerModel(snapshot, list, "nv_inference_exec_count", "Times that a pack ran.",
           [](const ModelStatsSnapshot& model) { return At(model, Stage::kRun).count; });
  AddDurations(snapshot, list);

  list.Begin("nv_inference_pending_request_count", MetricType::Gauge,
             "Requests that wait for a lane.");
  for (const auto& [key, view] : versions) {
    list.Add(OfModel(key.first, key.second), static_cast<double>(view.queued));
  }
  list.Begin("nv_model_load_duration_secs", MetricType::Gauge,
             "How long the model's last load took, in seconds.");
  for (const auto& [key, view] : versions) {
    list.Add(OfModel(key.first, key.second), view.load_seconds);
  }
  if (snapshot.cpu_memory_total_bytes == 0) return;
  list.One("nv_cpu_memory_total_bytes", MetricType::Gauge, "Memory of the machine.",
           static_cast<double>(snapshot.cpu_memory_total_bytes));
  if (snapshot.cpu_memory_used_bytes == 0) return;
  list.One("nv_cpu_memory_used_bytes", MetricType::Gauge,
           "Memory of the machine that is not available.",
           static_cast<double>(snapshot.cpu_memory_used_bytes));
}

}  // namespace mk
