#include "core/metrics/model_stats.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace mk {
namespace {

// The bounds in nanoseconds, so that a duration on a bound is compared without rounding.
constexpr std::array<int64_t, kLatencyBuckets.size()> BucketsNs() {
  std::array<int64_t, kLatencyBuckets.size()> ns{};
  for (size_t i = 0; i < ns.size(); ++i) {
    ns[i] = static_cast<int64_t>(kLatencyBuckets[i] * 1e9 + 0.5);
  }
  return ns;
}
constexpr auto kBucketsNs = BucketsNs();

// gRPC's codes by number; what is beyond them is a failure of ours.
constexpr Outcome kOutcomes[] = {
    Outcome::kOk,         // OK
    Outcome::kCancelled,  // CANCELLED
    Outcome::kFailed,     // UNKNOWN
    Outcome::kInvalid,    // INVALID_ARGUMENT
    Outcome::kExpired,    // DEADLINE_EXCEEDED
    Outcome::kInvalid,    // NOT_FOUND
    Outcome::kFailed,     // ALREADY_EXISTS
    Outcome::kInvalid,    // PERMISSION_DENIED
    Outcome::kRejected,   // RESOURCE_EXHAUSTED
    Outcome::kFailed,     // FAILED_PRECONDITION
    Outcome::kFailed,     // ABORTED
    Outcome::kInvalid,    // OUT_OF_RANGE
    Outcome::kInvalid,    // UNIMPLEMENTED
    Outcome::kFailed,     // INTERNAL
    Outcome::kRejected,   // UNAVAILABLE
    Outcome::kFailed,     // DATA_LOSS
    Outcome::kInvalid,    // UNAUTHENTICATED
};

// Counters are read one by one, not as one cut through time, so no order between them is promised.
constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

const char* StageName(Stage stage) {
  switch (stage) {
    case Stage::kQueue:
      return "queue";
    case Stage::kInput:
      return "input";
    case Stage::kRun:
      return "run";
    case Stage::kOutput:
      return "output";
    case Stage::kRequest:
      return "request";
  }
  return "unknown";
}

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kInvalid:
      return "invalid";
    case Outcome::kRejected:
      return "rejected";
    case Outcome::kExpired:
      return "expired";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kFailed:
      return "failed";
  }
  return "unknown";
}

Outcome OutcomeOf(int grpc_code) {
  const bool known = grpc_code >= 0 && grpc_code < static_cast<int>(std::size(kOutcomes));
  return known ? kOutcomes[grpc_code] : Outcome::kFailed;
}

void LatencyHistogram::Observe(int64_t ns) {
  ns = std::max<int64_t>(ns, 0);
  // The first bound that is at least `ns`: Prometheus' `le` includes the bound.
  const auto bucket = std::lower_bound(kBucketsNs.begin(), kBucketsNs.end(), ns);
  counts_[static_cast<size_t>(bucket - kBucketsNs.begin())].fetch_add(1, kRelaxed);
  sum_ns_.fetch_add(static_cast<uint64_t>(ns), kRelaxed);
}

HistogramSnapshot LatencyHistogram::Snapshot() const {
  HistogramSnapshot snapshot;
  for (size_t i = 0; i < counts_.size(); ++i) {
    snapshot.counts[i] = counts_[i].load(kRelaxed);
    // Added up here rather than counted apart, so that the +Inf bucket always equals the count.
    snapshot.count += snapshot.counts[i];
  }
  snapshot.sum_ns = sum_ns_.load(kRelaxed);
  return snapshot;
}

void ModelStats::Record(const RequestRecord& record) {
  outcomes_[static_cast<size_t>(record.outcome)].fetch_add(1, kRelaxed);
  for (int i = 0; i < kStageCount; ++i) {
    if (record.stage_ns[i] >= 0) stages_[i].Observe(record.stage_ns[i]);
  }
  const int64_t total_ns = record.stage_ns[static_cast<size_t>(Stage::kRequest)];
  if (total_ns > 0) {
    auto& sum = record.outcome == Outcome::kOk ? success_ns_ : fail_ns_;
    sum.fetch_add(static_cast<uint64_t>(total_ns), kRelaxed);
  }
  // The latest wins, also when two records arrive in the other order.
  int64_t last = last_unix_ms_.load(kRelaxed);
  while (last < record.unix_ms &&
         !last_unix_ms_.compare_exchange_weak(last, record.unix_ms, kRelaxed)) {
  }
  in_flight_.fetch_sub(1, kRelaxed);
}

ModelStatsSnapshot ModelStats::Snapshot() const {
  ModelStatsSnapshot snapshot;
  for (int i = 0; i < kOutcomeCount; ++i) snapshot.outcomes[i] = outcomes_[i].load(kRelaxed);
  for (int i = 0; i < kStageCount; ++i) snapshot.stages[i] = stages_[i].Snapshot();
  snapshot.success_ns = success_ns_.load(kRelaxed);
  snapshot.fail_ns = fail_ns_.load(kRelaxed);
  snapshot.last_unix_ms = last_unix_ms_.load(kRelaxed);
  snapshot.in_flight = in_flight_.load(kRelaxed);
  return snapshot;
}

std::shared_ptr<ModelStats> StatsTable::Get(const std::string& pack, int64_t version) {
  MutexLock lock(mutex_);
  std::shared_ptr<ModelStats>& stats = stats_[{pack, version}];
  if (stats == nullptr) stats = std::make_shared<ModelStats>();
  return stats;
}

void StatsTable::Drop(const std::string& pack, int64_t version) {
  MutexLock lock(mutex_);
  stats_.erase({pack, version});
}

std::vector<ModelStatsSnapshot> StatsTable::Snapshot() const {
  std::vector<ModelStatsSnapshot> snapshots;
  MutexLock lock(mutex_);
  snapshots.reserve(stats_.size());
  for (const auto& [key, stats] : stats_) {
    snapshots.push_back(stats->Snapshot());
    snapshots.back().pack = key.first;
    snapshots.back().version = key.second;
  }
  return snapshots;
}

void StatsTable::RecordSwap(const std::string& pack, const char* kind, bool ok, double seconds) {
  MutexLock lock(mutex_);
  SwapCount& swap = swaps_[{pack, kind, ok ? "ok" : "failed"}];
  ++swap.count;
  if (seconds > 0) swap.sum_ns += static_cast<uint64_t>(seconds * 1e9);
}

std::vector<SwapSnapshot> StatsTable::Swaps() const {
  std::vector<SwapSnapshot> snapshots;
  MutexLock lock(mutex_);
  for (const auto& [key, swap] : swaps_) {
    snapshots.push_back({key[0], key[1], key[2], swap.count, swap.sum_ns});
  }
  return snapshots;
}

}  // namespace mk
