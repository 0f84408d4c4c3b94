// What one run of a closed loop measured, and how several runs become one figure.
#ifndef MERGEKERNEL_TESTS_BENCH_LOAD_RESULT_H_
#define MERGEKERNEL_TESTS_BENCH_LOAD_RESULT_H_

#include <cstdint>
#include <vector>

namespace mk {

// How long to run. A closed loop: each of `concurrency` callers sends its next request when it has
// the answer to the last.
struct LoadPlan {
  int concurrency = 1;
  double warmup_seconds = 0.3;  // runs and is not counted
  double seconds = 2;
};

struct LoadResult {
  uint64_t requests = 0;  // that ended within the measured time
  double seconds = 0;
  double p50_us = 0;
  double p90_us = 0;
  double p99_us = 0;
  double max_us = 0;
  double server_cpu_seconds = -1;  // of the daemon's process, meanwhile; -1: not known

  double per_second() const { return seconds > 0 ? static_cast<double>(requests) / seconds : 0; }
  // The cleanest figure where client and server share the cores; -1: not known.
  double server_cpu_per_1000() const {
    if (server_cpu_seconds < 0 || requests == 0) return -1;
    return server_cpu_seconds * 1000 / static_cast<double>(requests);
  }
};

// The smallest element that at least `fraction` (0 to 1) of `sorted` do not exceed; 0 for none.
int64_t Percentile(const std::vector<int64_t>& sorted, double fraction);

// From the latencies of all requests.
LoadResult Summarise(std::vector<int64_t> latencies_ns, double seconds, double server_cpu_seconds);

// Of an even number, the lower of the middle two, so that it is a value that was measured; 0 of
// none.
double Median(std::vector<double> values);

// The median of each figure over `rounds`, on its own.
LoadResult MedianOf(const std::vector<LoadResult>& rounds);

}  // namespace mk

#endif  // MERGEKERNEL_TESTS_BENCH_LOAD_RESULT_H_
