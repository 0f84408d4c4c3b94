// The lanes under many threads; of most use under ThreadSanitizer and AddressSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/sched/lane_executor.h"
#include "core/sched/testing/fake_generation.h"

namespace mk {
namespace {

// Field case A10: 5,000 calls from 16 threads to a run of 1 ms, with deadlines of 0.2 to 2 ms. A
// quarter of the callers also cancel, from yet another side.
TEST(LaneLoad, A10ShortDeadlinesEndEachCallExactlyOnce) {
  FakeGeneration::Options options;
  options.lanes = 2;
  FakeGeneration generation(options);
  generation.model()->work_ns = 1'000'000;
  HostPool outputs(1 << 20, 1 << 20);
  LaneOptions lanes;
  lanes.global = std::make_shared<GlobalAdmission>(QueueLimits{4096, 1 << 20});
  auto executor = NewLaneExecutor(generation, lanes, outputs, SystemClock());
  ASSERT_TRUE(executor.ok()) << executor.status();

  constexpr int kThreads = 16;
  constexpr int kEach = 313;
  std::atomic<int> ended{0};
  std::atomic<int> strange{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      std::uniform_int_distribution<int64_t> deadline(200'000, 2'000'000);
      for (int i = 0; i < kEach; ++i) {
        const Sent sent = Send(**executor, i, SystemClock().NowNs() + deadline(random));
        if (t % 4 == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
          sent.stop->cancelled = true;
        }
        sent.answer->Wait();
        const absl::StatusCode code = sent.answer->code();
        const bool expected = code == absl::StatusCode::kOk ||
                              code == absl::StatusCode::kDeadlineExceeded ||
                              code == absl::StatusCode::kCancelled;
        if (!expected || sent.answer->times_done() != 1) ++strange;
        ++ended;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, kThreads * kEach);
  EXPECT_EQ(strange, 0);
  EXPECT_EQ((*executor)->queued(), 0u);
  EXPECT_TRUE(Eventually([&] { return (*executor)->running() == 0; }));
  EXPECT_EQ(lanes.global->load().requests, 0u);
  EXPECT_EQ(lanes.global->load().bytes, 0u);
  (*executor)->Stop();
  EXPECT_EQ(outputs.in_use_bytes(), 0u);
  EXPECT_EQ(generation.memory().live_total(), 0u);
}

TEST(LaneLoad, NoJobIsLostOrAnsweredTwiceWhenTheExecutorStopsUnderLoad) {
  for (int round = 0; round < 20; ++round) {
    FakeGeneration::Options options;
    options.lanes = 1 + round % 3;
    FakeGeneration generation(options);
    HostPool outputs(1 << 20, 1 << 20);
    LaneOptions lanes;
    lanes.limits = {8, 1 << 20};
    lanes.global = std::make_shared<GlobalAdmission>(QueueLimits{6, 1 << 20});
    auto executor = NewLaneExecutor(generation, lanes, outputs, SystemClock());
    ASSERT_TRUE(executor.ok()) << executor.status();
    std::vector<std::vector<Sent>> sent(4);
    std::vector<std::thread> threads;
    for (std::vector<Sent>& mine : sent) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) mine.push_back(Send(**executor, i));
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    (*executor)->Stop();
    for (std::thread& thread : threads) thread.join();
    for (const std::vector<Sent>& mine : sent) {
      for (const Sent& one : mine) {
        EXPECT_EQ(one.answer->times_done(), 1);
        const absl::StatusCode code = one.answer->code();
        EXPECT_TRUE(code == absl::StatusCode::kOk || code == absl::StatusCode::kUnavailable);
      }
    }
    EXPECT_EQ(lanes.global->load().requests, 0u);
    EXPECT_EQ((*executor)->running(), 0u);
  }
}

// A completion may let go of the last handle, and another thread then end the executor, while the
// submitter is still inside Submit.
TEST(LaneLoad, TheExecutorMayEndBeforeSubmitHasReturned) {
  FakeGeneration generation({});
  HostPool outputs(1 << 20, 1 << 20);
  for (int round = 0; round < 100; ++round) {
    auto made = NewLaneExecutor(generation, {}, outputs, SystemClock());
    ASSERT_TRUE(made.ok()) << made.status();
    std::unique_ptr<Executor> executor = *std::move(made);
    Executor& alias = *executor;
    Sent sent;
    std::thread reaper([&] {
      sent.answer->Wait();
      executor->Stop();
      executor.reset();
    });
    alias.Submit(MakeJob(sent, 1));
    reaper.join();
    EXPECT_EQ(sent.answer->code(), absl::StatusCode::kOk);
  }
}

}  // namespace
}  // namespace mk
