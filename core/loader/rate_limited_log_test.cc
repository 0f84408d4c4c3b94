#include "core/loader/rate_limited_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mk {
namespace {

TEST(RateLimitedLog, APackThatLogsWithoutEndLeavesAFewLinesAndTheirCount) {
  FakeClock clock;
  std::vector<std::string> lines;
  const LogLine log =
      RateLimited([&](int, const std::string& line) { lines.push_back(line); }, clock);
  for (int i = 0; i < 1000; ++i) log(1, "again");
  EXPECT_EQ(lines.size(), 100u);
  clock.AdvanceNs(500'000'000);
  for (int i = 0; i < 1000; ++i) log(1, "again");
  ASSERT_EQ(lines.size(), 105u);
  EXPECT_EQ(lines[100], "again (900 lines of this pack were dropped)");
  EXPECT_EQ(lines[101], "again");
  EXPECT_FALSE(RateLimited(nullptr, clock));
}

}  // namespace
}  // namespace mk
