#include "tests/bench/load_result.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace mk {
namespace {

double Microseconds(int64_t ns) { return static_cast<double>(ns) * 1e-3; }

}  // namespace

int64_t Percentile(const std::vector<int64_t>& sorted, double fraction) {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(fraction * static_cast<double>(sorted.size()));
  const auto index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

LoadResult Summarise(std::vector<int64_t> latencies_ns, double seconds, double server_cpu_seconds) {
  std::sort(latencies_ns.begin(), latencies_ns.end());
  LoadResult result;
  result.requests = latencies_ns.size();
  result.seconds = seconds;
  result.p50_us = Microseconds(Percentile(latencies_ns, 0.5));
  result.p90_us = Microseconds(Percentile(latencies_ns, 0.9));
  result.p99_us = Microseconds(Percentile(latencies_ns, 0.99));
  result.max_us = Microseconds(Percentile(latencies_ns, 1));
  result.server_cpu_seconds = server_cpu_seconds;
  return result;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

LoadResult MedianOf(const std::vector<LoadResult>& rounds) {
  const auto median = [&](auto figure) {
    std::vector<double> values;
    for (const LoadResult& round : rounds) values.push_back(figure(round));
    return Median(std::move(values));
  };
  LoadResult result;
  if (rounds.empty()) return result;
  result.seconds = median([](const LoadResult& r) { return r.seconds; });
  // From the rate, so that rate, count and time belong together.
  const double rate = median([](const LoadResult& r) { return r.per_second(); });
  result.requests = static_cast<uint64_t>(std::llround(rate * result.seconds));
  result.p50_us = median([](const LoadResult& r) { return r.p50_us; });
  result.p90_us = median([](const LoadResult& r) { return r.p90_us; });
  result.p99_us = median([](const LoadResult& r) { return r.p99_us; });
  result.max_us = median([](const LoadResult& r) { return r.max_us; });
  const double cpu = median([](const LoadResult& r) { return r.server_cpu_per_1000(); });
  if (cpu >= 0) result.server_cpu_seconds = cpu * static_cast<double>(result.requests) / 1000;
  return result;
}

}  // namespace mk
