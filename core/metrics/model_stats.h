// What the daemon counts about requests and swaps: lock-free on the hot path, read as snapshots by
// the Prometheus endpoint and by ModelStatistics.
#ifndef MERGEKERNEL_CORE_METRICS_MODEL_STATS_H_
#define MERGEKERNEL_CORE_METRICS_MODEL_STATS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace mk {

// Latency buckets, seconds; 50 us to 30 s.
inline constexpr std::array<double, 18> kLatencyBuckets = {
    50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3,
    50e-3, 0.1,    0.2,    0.5,    1,    2,    5,    10,    30};

struct HistogramSnapshot {
  std::array<uint64_t, kLatencyBuckets.size() + 1>
      counts{};  // per bucket, not cumulative; the last is +Inf
  uint64_t count = 0;
  uint64_t sum_ns = 0;
};

class LatencyHistogram {
 public:
  void Observe(int64_t ns);
  HistogramSnapshot Snapshot() const;

 private:
  std::array<std::atomic<uint64_t>, kLatencyBuckets.size() + 1> counts_{};
  std::atomic<uint64_t> sum_ns_{0};
};

enum class Stage {
  kQueue = 0,
  kInput = 1,
  kRun = 2,
  kOutput = 3,
  kRequest = 4
};  // kRequest: all of it
inline constexpr int kStageCount = 5;
const char* StageName(Stage stage);  // "queue", "input", "run", "output", "request"

enum class Outcome {
  kOk = 0,
  kInvalid = 1,
  kRejected = 2,
  kExpired = 3,
  kCancelled = 4,
  kFailed = 5
};
inline constexpr int kOutcomeCount = 6;
const char* OutcomeName(
    Outcome outcome);              // "ok", "invalid", "rejected", "expired", "cancelled", "failed"
Outcome OutcomeOf(int grpc_code);  // a pure table

// Durations of one request in nanoseconds; negative: did not get there.
struct RequestRecord {
  Outcome outcome = Outcome::kOk;
  std::array<int64_t, kStageCount> stage_ns = {-1, -1, -1, -1, -1};
  int64_t unix_ms = 0;
};

struct ModelStatsSnapshot {
  std::string pack;
  int64_t version = 0;
  std::array<uint64_t, kOutcomeCount> outcomes{};
  std::array<HistogramSnapshot, kStageCount> stages;  // of all requests that reached the stage
  uint64_t success_ns = 0;                            // kRequest of successes alone
  uint64_t fail_ns = 0;
  int64_t last_unix_ms = 0;
  int64_t in_flight = 0;
};

// Of one version of a pack; kept across reloads of the version. Any thread.
class ModelStats {
 public:
  void Begin() { in_flight_.fetch_add(1, std::memory_order_relaxed); }
  void Record(const RequestRecord& record);  // ends what Begin began
  ModelStatsSnapshot Snapshot() const;       // without names

 private:
  std::array<std::atomic<uint64_t>, kOutcomeCount> outcomes_{};
  std::array<LatencyHistogram, kStageCount> stages_;
  std::atomic<uint64_t> success_ns_{0};
  std::atomic<uint64_t> fail_ns_{0};
  std::atomic<int64_t> last_unix_ms_{0};
  std::atomic<int64_t> in_flight_{0};
};

struct SwapSnapshot {
  std::string pack;
  std::string kind;     // "load", "swap", "unload"
  std::string outcome;  // "ok", "failed"
  uint64_t count = 0;
  uint64_t sum_ns = 0;
};

// All of them, by pack and version. Any thread.
class StatsTable {
 public:
  // Made on first use.
  std::shared_ptr<ModelStats> Get(const std::string& pack, int64_t version) MK_EXCLUDES(mutex_);
  // Forgets a version that is not loaded any more, so that swaps do not grow the table.
  void Drop(const std::string& pack, int64_t version) MK_EXCLUDES(mutex_);
  std::vector<ModelStatsSnapshot> Snapshot() const MK_EXCLUDES(mutex_);  // by pack and version

  // `pack` must be one of the repository's, so that names from outside cannot grow the table.
  void RecordSwap(const std::string& pack, const char* kind, bool ok, double seconds)
      MK_EXCLUDES(mutex_);
  std::vector<SwapSnapshot> Swaps() const MK_EXCLUDES(mutex_);

  // Requests that named no pack of ours, so have no ModelStats.
  std::atomic<uint64_t> unknown_model{0};

 private:
  struct SwapCount {
    uint64_t count = 0;
    uint64_t sum_ns = 0;
  };
  mutable Mutex mutex_;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<ModelStats>> stats_
      MK_GUARDED_BY(mutex_);
  std::map<std::array<std::string, 3>, SwapCount> swaps_ MK_GUARDED_BY(mutex_);
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_METRICS_MODEL_STATS_H_
