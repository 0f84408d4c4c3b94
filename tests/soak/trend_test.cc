#include "tests/soak/trend.h"

#include <gtest/gtest.h>

#include <vector>

namespace mk {
namespace {

TEST(Trend, FindsTheSlopeOfALine) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(1000 + 3 * i);
  const Trend trend = TrendOf(values);
  EXPECT_NEAR(trend.per_cycle, 3, 1e-9);
  EXPECT_DOUBLE_EQ(trend.first, 1015);
  EXPECT_DOUBLE_EQ(trend.last, 1285);
}

TEST(Trend, IsNotFooledByWhatComesAndGoes) {
  std::vector<double> values(200, 50);
  for (size_t i = 5; i < values.size(); i += 17) values[i] = 60;
  const Trend trend = TrendOf(values);
  EXPECT_NEAR(trend.per_cycle, 0, 5e-3);
  EXPECT_DOUBLE_EQ(trend.first, 50);
  EXPECT_DOUBLE_EQ(trend.last, 50);
}

TEST(Trend, OfOneOrNoneIsFlat) {
  EXPECT_EQ(TrendOf({7}).per_cycle, 0);
  EXPECT_EQ(TrendOf({7}).last, 7);
  EXPECT_EQ(TrendOf({}).per_cycle, 0);
}

}  // namespace
}  // namespace mk
