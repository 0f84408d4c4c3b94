#include "tests/bench/in_process.h"

#include <gtest/gtest.h>

#include "tests/packs/pack_builder.h"

namespace mk {
namespace {

LoadPlan Brief(int concurrency) {
  LoadPlan plan;
  plan.concurrency = concurrency;
  plan.warmup_seconds = 0;
  plan.seconds = 0.05;
  return plan;
}

class InProcessTest : public testing::TestWithParam<InProcessWay> {
 protected:
  TestRepository repository_;
};

TEST_P(InProcessTest, ServesAndCountsWhatItServed) {
  repository_.Install("echo", 1, EchoSpec());
  auto served = InProcess::Open(repository_.root(), GetParam());
  ASSERT_TRUE(served.ok()) << served.status();
  for (const int concurrency : {1, 3}) {
    const auto result = (*served)->Run(*FindCase("echo-1KiB"), Brief(concurrency));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GT(result->requests, 0u);
    EXPECT_GT(result->p50_us, 0);
    EXPECT_LE(result->p50_us, result->p99_us);
    EXPECT_LT(result->server_cpu_per_1000(), 0);
  }
}

TEST_P(InProcessTest, TellsWhatIsMissing) {
  auto served = InProcess::Open(repository_.root(), GetParam());
  ASSERT_TRUE(served.ok()) << served.status();
  const auto result = (*served)->Run(*FindCase("echo-1KiB"), Brief(1));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound) << result.status();
}

TEST_P(InProcessTest, DoesNotMeasureWrongAnswers) {
  repository_.Install("echo", 1, FixtureSpec("version1"));  // answers with a number
  auto served = InProcess::Open(repository_.root(), GetParam());
  ASSERT_TRUE(served.ok()) << served.status();
  BenchCase bench_case = *FindCase("echo-1KiB");
  bench_case.input = "INPUT0";
  const auto result = (*served)->Run(bench_case, Brief(1));
  EXPECT_FALSE(result.ok());
}

INSTANTIATE_TEST_SUITE_P(Ways, InProcessTest,
                         testing::Values(InProcessWay::kDirect, InProcessWay::kLanes));

}  // namespace
}  // namespace mk
