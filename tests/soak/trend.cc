#include "tests/soak/trend.h"

#include <algorithm>
#include <cstddef>

namespace mk {
namespace {

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Trend TrendOf(const std::vector<double>& values) {
  Trend trend;
  if (values.empty()) return trend;
  const auto tenth = static_cast<ptrdiff_t>(std::max<size_t>(1, values.size() / 10));
  trend.first = MedianOf({values.begin(), values.begin() + tenth});
  trend.last = MedianOf({values.end() - tenth, values.end()});
  const double count = static_cast<double>(values.size());
  const double mean_x = (count - 1) / 2;
  double mean_y = 0;
  for (const double value : values) mean_y += value / count;
  double covariance = 0, variance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - mean_x;
    covariance += x * (values[i] - mean_y);
    variance += x * x;
  }
  if (variance > 0) trend.per_cycle = covariance / variance;
  return trend;
}

}  // namespace mk
