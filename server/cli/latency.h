// Latencies of any number of requests in a fixed amount of memory: percentiles within 0.1 %.
#ifndef MERGEKERNEL_SERVER_CLI_LATENCY_H_
#define MERGEKERNEL_SERVER_CLI_LATENCY_H_

#include <cstdint>
#include <vector>

namespace mk::cli {

// One thread at a time; each worker has its own and they are merged at the end.
class LatencyRecorder {
 public:
  LatencyRecorder();

  void Record(int64_t ns);  // below 0 counts as 0
  void Merge(const LatencyRecorder& other);

  uint64_t count() const { return count_; }
  int64_t max_ns() const { return max_ns_; }
  double mean_ns() const { return count_ ? sum_ns_ / static_cast<double>(count_) : 0; }

  // The value that `fraction` (0 to 1) of all do not pass (nearest rank), rounded up by at most
  // 1 / 1024; 0 when nothing was recorded.
  int64_t PercentileNs(double fraction) const;

 private:
  std::vector<uint64_t> counts_;  // kSteps per power of two
  uint64_t count_ = 0;
  int64_t max_ns_ = 0;
  double sum_ns_ = 0;
};

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_LATENCY_H_
