// Numeric comparison that explains itself: NaN and infinity by position first, then the error
// against a bound, and always where it is worst. For EXPECT_TRUE.
#ifndef MERGEKERNEL_KERNELS_TESTING_COMPARE_H_
#define MERGEKERNEL_KERNELS_TESTING_COMPARE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace mk::testing {

// ||got - want|| / ||want|| <= bound, both norms in double. `shape` only words the worst index;
// empty: flat. A `want` of all zeros must be met exactly.
::testing::AssertionResult IsNearRelL2(const std::vector<float>& got,
                                       const std::vector<double>& want, double bound,
                                       const std::vector<int64_t>& shape = {});
::testing::AssertionResult IsNearRelL2(const std::vector<float>& got,
                                       const std::vector<float>& want, double bound,
                                       const std::vector<int64_t>& shape = {});

// |got[i] - want[i]| <= absolute + relative * |want[i]| for each i.
::testing::AssertionResult IsNear(const std::vector<float>& got, const std::vector<double>& want,
                                  double absolute, double relative,
                                  const std::vector<int64_t>& shape = {});

}  // namespace mk::testing

#endif  // MERGEKERNEL_KERNELS_TESTING_COMPARE_H_
