#include "tests/bench/load_result.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace mk {
namespace {

TEST(Percentile, IsAMeasuredValueThatEnoughDoNotExceed) {
  std::vector<int64_t> hundred(100);
  std::iota(hundred.begin(), hundred.end(), 1);
  EXPECT_EQ(Percentile(hundred, 0.5), 50);
  EXPECT_EQ(Percentile(hundred, 0.99), 99);
  EXPECT_EQ(Percentile(hundred, 1), 100);
  EXPECT_EQ(Percentile(hundred, 0), 1);
}

TEST(Percentile, OfOneIsThatOneAndOfNoneIsZero) {
  EXPECT_EQ(Percentile({7}, 0.01), 7);
  EXPECT_EQ(Percentile({7}, 0.99), 7);
  EXPECT_EQ(Percentile({}, 0.5), 0);
}

TEST(Summarise, SortsAndTurnsNanosecondsIntoMicroseconds) {
  const LoadResult result = Summarise({3000, 1000, 2000}, 2, 0.03);
  EXPECT_EQ(result.requests, 3u);
  EXPECT_DOUBLE_EQ(result.p50_us, 2);
  EXPECT_DOUBLE_EQ(result.max_us, 3);
  EXPECT_DOUBLE_EQ(result.per_second(), 1.5);
  EXPECT_DOUBLE_EQ(result.server_cpu_per_1000(), 10);
}

TEST(Summarise, KnowsNoCpuTimeWhereNoneWasRead) {
  EXPECT_EQ(Summarise({1000}, 1, -1).server_cpu_per_1000(), -1);
  EXPECT_EQ(Summarise({}, 1, 1).server_cpu_per_1000(), -1);
  EXPECT_EQ(Summarise({}, 0, 1).per_second(), 0);
}

TEST(Median, IsTheLowerOfTheMiddleTwo) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2);
  EXPECT_EQ(Median({}), 0);
}

TEST(MedianOf, TakesEachFigureOnItsOwn) {
  std::vector<LoadResult> rounds = {Summarise({1000, 9000}, 1, 0.002),
                                    Summarise({2000, 7000, 7000}, 1, 0.006),
                                    Summarise({3000, 8000, 8000, 8000}, 1, 0.016)};
  const LoadResult result = MedianOf(rounds);
  EXPECT_DOUBLE_EQ(result.p50_us, 7);
  EXPECT_DOUBLE_EQ(result.max_us, 8);
  EXPECT_DOUBLE_EQ(result.per_second(), 3);
  EXPECT_DOUBLE_EQ(result.server_cpu_per_1000(), 2);
  EXPECT_EQ(MedianOf({}).requests, 0u);
}

}  // namespace
}  // namespace mk
