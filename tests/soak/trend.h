// Whether a number that is read again and again grows.
#ifndef MERGEKERNEL_TESTS_SOAK_TREND_H_
#define MERGEKERNEL_TESTS_SOAK_TREND_H_

#include <vector>

namespace mk {

struct Trend {
  double first = 0;  // medians of the first and the last tenth of the values
  double last = 0;
  double per_cycle = 0;  // slope of the least-squares line
};

// `values`: one per cycle, in order. All zero for none.
Trend TrendOf(const std::vector<double>& values);

}  // namespace mk

#endif  // MERGEKERNEL_TESTS_SOAK_TREND_H_
