#include "core/metrics/model_stats.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace mk {
namespace {

TEST(LatencyHistogram, BucketsIncludeTheirBound) {
  LatencyHistogram histogram;
  histogram.Observe(0);
  histogram.Observe(50'000);  // exactly 50 us
  histogram.Observe(50'001);
  histogram.Observe(30'000'000'000);  // exactly 30 s
  histogram.Observe(30'000'000'001);
  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_EQ(snapshot.counts[0], 2u);
  EXPECT_EQ(snapshot.counts[1], 1u);
  EXPECT_EQ(snapshot.counts[kLatencyBuckets.size() - 1], 1u);
  EXPECT_EQ(snapshot.counts[kLatencyBuckets.size()], 1u);
  EXPECT_EQ(snapshot.count, 5u);
  EXPECT_EQ(snapshot.sum_ns, 60'000'100'002u);
}

TEST(LatencyHistogram, ATimeBeforeItsStartCountsAsNone) {
  LatencyHistogram histogram;
  histogram.Observe(-5);
  EXPECT_EQ(histogram.Snapshot().counts[0], 1u);
  EXPECT_EQ(histogram.Snapshot().sum_ns, 0u);
}

TEST(LatencyHistogram, EveryBoundIsExact) {
  for (size_t i = 0; i < kLatencyBuckets.size(); ++i) {
    LatencyHistogram histogram;
    histogram.Observe(static_cast<int64_t>(kLatencyBuckets[i] * 1e9 + 0.5));
    EXPECT_EQ(histogram.Snapshot().counts[i], 1u) << i;
  }
}

TEST(OutcomeOf, EveryCodeHasAnOutcome) {
  EXPECT_EQ(OutcomeOf(0), Outcome::kOk);
  EXPECT_EQ(OutcomeOf(1), Outcome::kCancelled);
  EXPECT_EQ(OutcomeOf(4), Outcome::kExpired);
  for (const int code : {8, 14}) EXPECT_EQ(OutcomeOf(code), Outcome::kRejected) << code;
  for (const int code : {3, 5, 7, 11, 12, 16})
    EXPECT_EQ(OutcomeOf(code), Outcome::kInvalid) << code;
  for (const int code : {2, 6, 9, 10, 13, 15, 17, -1, 1000}) {
    EXPECT_EQ(OutcomeOf(code), Outcome::kFailed) << code;
  }
}

TEST(ModelStats, CountsStagesThatWereReachedAndNoOthers) {
  ModelStats stats;
  stats.Begin();
  EXPECT_EQ(stats.Snapshot().in_flight, 1);
  RequestRecord record;
  record.outcome = Outcome::kExpired;
  record.stage_ns = {7000, -1, -1, -1, 9000};
  record.unix_ms = 500;
  stats.Record(record);
  stats.Begin();
  record.outcome = Outcome::kOk;
  record.stage_ns = {1000, 2000, 3000, 4000, 10000};
  record.unix_ms = 400;  // recorded late
  stats.Record(record);
  const ModelStatsSnapshot snapshot = stats.Snapshot();
  EXPECT_EQ(snapshot.in_flight, 0);
  EXPECT_EQ(snapshot.outcomes[static_cast<int>(Outcome::kExpired)], 1u);
  EXPECT_EQ(snapshot.outcomes[static_cast<int>(Outcome::kOk)], 1u);
  EXPECT_EQ(snapshot.stages[static_cast<int>(Stage::kQueue)].count, 2u);
  EXPECT_EQ(snapshot.stages[static_cast<int>(Stage::kQueue)].sum_ns, 8000u);
  EXPECT_EQ(snapshot.stages[static_cast<int>(Stage::kRun)].count, 1u);
  EXPECT_EQ(snapshot.success_ns, 10000u);
  EXPECT_EQ(snapshot.fail_ns, 9000u);
  EXPECT_EQ(snapshot.last_unix_ms, 500);
}

TEST(StatsTable, KeepsAVersionUntilItIsDropped) {
  StatsTable table;
  table.Get("b", 2)->Begin();
  table.Get("b", 10);
  table.Get("a", 1);
  EXPECT_EQ(table.Get("b", 2)->Snapshot().in_flight, 1);
  const std::vector<ModelStatsSnapshot> all = table.Snapshot();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].pack, "a");
  EXPECT_EQ(all[1].version, 2);
  EXPECT_EQ(all[2].version, 10);  // by number
  // A request in flight may still record into what was dropped.
  const auto held = table.Get("b", 2);
  table.Drop("b", 2);
  held->Record({});
  EXPECT_EQ(table.Snapshot().size(), 2u);
  EXPECT_EQ(table.Get("b", 2)->Snapshot().outcomes[0], 0u);
}

TEST(StatsTable, AThousandSwapsDoNotGrowIt) {
  StatsTable table;
  for (int64_t version = 1; version <= 1000; ++version) {
    table.Get("a", version)->Begin();
    table.RecordSwap("a", "swap", version % 2 == 0, 0.001);
    table.Drop("a", version);
  }
  EXPECT_TRUE(table.Snapshot().empty());
  const std::vector<SwapSnapshot> swaps = table.Swaps();
  ASSERT_EQ(swaps.size(), 2u);
  EXPECT_EQ(swaps[0].outcome, "failed");
  EXPECT_EQ(swaps[1].outcome, "ok");
  EXPECT_EQ(swaps[1].count, 500u);
  EXPECT_NEAR(static_cast<double>(swaps[1].sum_ns), 0.5e9, 1e6);
}

TEST(StatsTable, ManyThreadsLoseNothing) {
  StatsTable table;
  constexpr int kThreads = 8;
  constexpr int kEach = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&table, t] {
      for (int i = 0; i < kEach; ++i) {
        const auto stats = table.Get("a", t % 2);
        stats->Begin();
        RequestRecord record;
        record.stage_ns = {1, 1, 1, 1, 4};
        record.unix_ms = i;
        stats->Record(record);
        if (i % 500 == 0) {
          table.RecordSwap("a", "load", true, 0.1);
          table.Snapshot();
          table.Drop("b", i);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t ok = 0;
  for (const ModelStatsSnapshot& snapshot : table.Snapshot()) {
    ok += snapshot.outcomes[0];
    EXPECT_EQ(snapshot.in_flight, 0);
    EXPECT_EQ(snapshot.stages[4].sum_ns, 4 * snapshot.outcomes[0]);
    EXPECT_EQ(snapshot.last_unix_ms, kEach - 1);
  }
  EXPECT_EQ(ok, static_cast<uint64_t>(kThreads * kEach));
  EXPECT_EQ(table.Swaps()[0].count, static_cast<uint64_t>(kThreads * 4));
}

}  // namespace
}  // namespace mk
