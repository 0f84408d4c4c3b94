#include "core/sched/lane_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/sched/testing/fake_generation.h"

namespace mk {
namespace {

constexpr int64_t kMs = 1'000'000;

// A generation with its executor.
class Bench {
 public:
  explicit Bench(FakeGeneration::Options options = {}, LaneOptions lanes = {},
                 const Clock& clock = SystemClock())
      : generation_(options), outputs_(1 << 20, 1 << 20) {
    auto executor = NewLaneExecutor(generation_, lanes, outputs_, clock);
    EXPECT_TRUE(executor.ok()) << executor.status();
    executor_ = *std::move(executor);
  }
  ~Bench() {
    model().gate = true;
    executor_->Stop();
  }
  mk_model& model() { return *generation_.model(); }
  Executor& executor() { return *executor_; }
  HostPool& outputs() { return outputs_; }
  // Every lane held by a run that ends when the gate opens.
  std::vector<Sent> HoldLanes() {
    model().gate = false;
    std::vector<Sent> held;
    for (int i = 0; i < generation_.lanes(); ++i) held.push_back(Send(executor(), 100 + i));
    EXPECT_TRUE(Eventually([&] { return model().running == generation_.lanes(); }));
    return held;
  }

 private:
  FakeGeneration generation_;
  HostPool outputs_;
  std::unique_ptr<Executor> executor_;
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(LaneExecutor, AnswersAndMeasuresEachStep) {
  Bench bench;
  const Sent sent = Send(bench.executor(), 42);
  sent.answer->Wait();
  EXPECT_EQ(sent.answer->code(), absl::StatusCode::kOk) << sent.answer->message();
  EXPECT_EQ(sent.answer->output(), std::vector<uint8_t>{42});
  const RequestTimes times = sent.answer->times();
  EXPECT_GT(times.received_ns, 0);
  EXPECT_LE(times.received_ns, times.queued_ns);
  EXPECT_LE(times.queued_ns, times.started_ns);
  EXPECT_LE(times.started_ns, times.finished_ns);
  EXPECT_EQ(bench.executor().running(), 0u);
  EXPECT_EQ(bench.executor().queued(), 0u);
}

TEST(LaneExecutor, FirstComeFirstServed) {
  Bench bench;
  const std::vector<Sent> held = bench.HoldLanes();
  std::vector<Sent> waiting;
  for (int64_t tag = 0; tag < 20; ++tag) waiting.push_back(Send(bench.executor(), tag));
  EXPECT_EQ(bench.executor().queued(), 20u);
  EXPECT_EQ(bench.executor().running(), 1u);
  bench.model().gate = true;
  for (const Sent& sent : waiting) sent.answer->Wait();
  MutexLock lock(bench.model().mutex);
  std::vector<int64_t> expected = {100};
  for (int64_t tag = 0; tag < 20; ++tag) expected.push_back(tag);
  EXPECT_EQ(bench.model().tags, expected);
}

TEST(LaneExecutor, RunsAsManyAtOnceAsThereAreLanes) {
  FakeGeneration::Options options;
  options.lanes = 3;
  Bench bench(options);
  const std::vector<Sent> held = bench.HoldLanes();
  const Sent waits = Send(bench.executor(), 1);
  EXPECT_EQ(bench.executor().running(), 3u);
  EXPECT_EQ(bench.executor().queued(), 1u);
  bench.model().gate = true;
  waits.answer->Wait();
  EXPECT_EQ(bench.model().most_running, 3);
}

TEST(LaneExecutor, AFullQueueRefusesAtOnceAndNamesTheLimit) {
  LaneOptions lanes;
  lanes.limits = {2, 100};
  Bench bench({}, lanes);
  const std::vector<Sent> held = bench.HoldLanes();
  const Sent first = Send(bench.executor(), 1, INT64_MAX, 60);
  const Sent heavy = Send(bench.executor(), 2, INT64_MAX, 50);
  EXPECT_EQ(heavy.answer->code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Contains(heavy.answer->message(), "limit of 100")) << heavy.answer->message();
  const Sent second = Send(bench.executor(), 3, INT64_MAX, 40);
  const Sent third = Send(bench.executor(), 4, INT64_MAX, 0);
  EXPECT_EQ(third.answer->code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Contains(third.answer->message(), "Exceeds maximum queue size: "));
  EXPECT_TRUE(Contains(third.answer->message(), "limit is 2")) << third.answer->message();
  EXPECT_EQ(third.answer->times().started_ns, 0);
  bench.model().gate = true;
  first.answer->Wait();
  second.answer->Wait();
  EXPECT_EQ(bench.model().started, 3);
}

TEST(LaneExecutor, WhatCanNeverWaitIsRefusedEvenWhenALaneIsIdle) {
  LaneOptions lanes;
  lanes.limits = {2, 100};
  Bench bench({}, lanes);
  const Sent sent = Send(bench.executor(), 1, INT64_MAX, 101);
  EXPECT_EQ(sent.answer->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(bench.model().started, 0);
}

TEST(LaneExecutor, GlobalLimitsHoldOverPacksAndReturnToZero) {
  LaneOptions lanes;
  lanes.global = std::make_shared<GlobalAdmission>(QueueLimits{2, 1000});
  Bench a({}, lanes);
  Bench b({}, lanes);
  const std::vector<Sent> held_a = a.HoldLanes();
  const std::vector<Sent> held_b = b.HoldLanes();
  EXPECT_EQ(lanes.global->load().requests, 0u) << "what runs does not wait";
  const Sent waits_a = Send(a.executor(), 1, INT64_MAX, 10);
  const Sent waits_b = Send(b.executor(), 2, SystemClock().NowNs() + 300 * kMs, 20);
  EXPECT_EQ(lanes.global->load().requests, 2u);
  EXPECT_EQ(lanes.global->load().bytes, 30u);
  const Sent refused = Send(a.executor(), 3);
  EXPECT_EQ(refused.answer->code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Contains(refused.answer->message(), "all packs: ")) << refused.answer->message();
  waits_b.answer->Wait();  // expires, and leaves
  EXPECT_EQ(lanes.global->load().bytes, 10u);
  const Sent cancelled = Send(b.executor(), 4, INT64_MAX, 30);
  cancelled.stop->cancelled = true;
  cancelled.answer->Wait();
  const Sent stopped = Send(b.executor(), 5, INT64_MAX, 40);
  b.model().gate = true;
  b.executor().Stop();
  a.model().gate = true;
  waits_a.answer->Wait();
  stopped.answer->Wait();
  EXPECT_EQ(lanes.global->load().requests, 0u);
  EXPECT_EQ(lanes.global->load().bytes, 0u);
}

TEST(LaneExecutor, WhatIsOverAtSubmitNeverReachesThePack) {
  Bench bench;
  const Sent expired = Send(bench.executor(), 1, SystemClock().NowNs());
  EXPECT_EQ(expired.answer->code(), absl::StatusCode::kDeadlineExceeded);
  Sent cancelled;
  cancelled.stop->cancelled = true;
  bench.executor().Submit(MakeJob(cancelled, 2));
  EXPECT_EQ(cancelled.answer->code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(bench.model().started, 0);
}

TEST(LaneExecutor, ExpiresInTheQueueWithinTenMsWhileAllLanesAreBusy) {
  Bench bench;
  const std::vector<Sent> held = bench.HoldLanes();
  const int64_t start_ns = SystemClock().NowNs();
  std::vector<Sent> waiting;
  for (int i = 0; i < 11; ++i) {
    // Falling, so that each is nearer than those that the timer knows.
    waiting.push_back(Send(bench.executor(), i, start_ns + (200 - 15 * i) * kMs));
  }
  std::vector<int64_t> late_ns;
  for (const Sent& sent : waiting) {
    sent.answer->Wait();
    EXPECT_EQ(sent.answer->code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(sent.answer->times().started_ns, 0);
    late_ns.push_back(sent.answer->done_ns() - sent.stop->deadline_ns);
    EXPECT_GE(late_ns.back(), 0);
  }
  // The median: a loaded test machine may delay one or two of them by itself.
  std::sort(late_ns.begin(), late_ns.end());
  EXPECT_LE(late_ns[late_ns.size() / 2], 10 * kMs);
  EXPECT_EQ(bench.model().started, 1);
}

TEST(LaneExecutor, DeadlinesAreReadOnTheGivenClock) {
  FakeClock clock;
  Bench bench({}, {}, clock);
  const std::vector<Sent> held = bench.HoldLanes();
  const Sent waits = Send(bench.executor(), 1, clock.NowNs() + 1000 * kMs);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(waits.answer->done());
  clock.AdvanceNs(1000 * kMs);
  waits.answer->Wait();
  EXPECT_EQ(waits.answer->code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(LaneExecutor, CancelledInTheQueueEndsWhileAllLanesAreBusy) {
  Bench bench;
  const std::vector<Sent> held = bench.HoldLanes();
  const Sent before = Send(bench.executor(), 1);
  const Sent waits = Send(bench.executor(), 2);
  const Sent after = Send(bench.executor(), 3);
  waits.stop->cancelled = true;
  waits.answer->Wait();
  EXPECT_EQ(waits.answer->code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(bench.executor().queued(), 2u);
  bench.model().gate = true;
  before.answer->Wait();
  after.answer->Wait();
  MutexLock lock(bench.model().mutex);
  EXPECT_EQ(bench.model().tags, (std::vector<int64_t>{100, 1, 3}));
}

TEST(LaneExecutor, ARunHearsOfCancelAndDeadline) {
  Bench bench;
  bench.model().gate = false;
  const Sent cancelled = Send(bench.executor(), 1);
  EXPECT_TRUE(Eventually([&] { return bench.model().running == 1; }));
  cancelled.stop->cancelled = true;
  cancelled.answer->Wait();
  EXPECT_EQ(cancelled.answer->code(), absl::StatusCode::kCancelled);
  EXPECT_GT(cancelled.answer->times().started_ns, 0);
  const Sent expired = Send(bench.executor(), 2, SystemClock().NowNs() + 20 * kMs);
  expired.answer->Wait();
  EXPECT_EQ(expired.answer->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(bench.model().completed, 0);
}

TEST(LaneExecutor, StopEndsWhatWaitsAndLetsFinishWhatRuns) {
  Bench bench;
  std::vector<Sent> held = bench.HoldLanes();
  const Sent waits = Send(bench.executor(), 1);
  std::thread stopper([&] { bench.executor().Stop(); });
  waits.answer->Wait();
  EXPECT_EQ(waits.answer->code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(held[0].answer->done());
  std::thread second([&] { bench.executor().Stop(); });
  bench.model().gate = true;
  stopper.join();
  second.join();
  EXPECT_EQ(held[0].answer->code(), absl::StatusCode::kOk);
  EXPECT_EQ(bench.executor().running(), 0u);
  const Sent late = Send(bench.executor(), 2);
  EXPECT_EQ(late.answer->code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Contains(late.answer->message(), "unloaded")) << late.answer->message();
  bench.executor().Stop();
}

TEST(LaneExecutor, ThrownThingsStayOnTheLane) {
  Bench bench;
  bench.model().throws = true;
  const Sent thrown = Send(bench.executor(), 1);
  thrown.answer->Wait();
  EXPECT_EQ(thrown.answer->code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(Contains(thrown.answer->message(), "thrown by the fake pack"));
  bench.model().throws = false;
  Sent broken;
  std::unique_ptr<Job> job = MakeJob(broken, 2);
  job->done = [](Job&, absl::StatusOr<InferResponse>) { throw std::runtime_error("completion"); };
  bench.executor().Submit(std::move(job));
  const Sent next = Send(bench.executor(), 3);
  next.answer->Wait();
  EXPECT_EQ(next.answer->code(), absl::StatusCode::kOk);
}

TEST(LaneExecutor, ScratchIsTakenAtTheStartAndGivenBackAtTheEnd) {
  FakeGeneration::Options options;
  options.lanes = 2;
  options.scratch_bytes = 1 << 20;
  FakeGeneration generation(options);
  HostPool outputs(1 << 20, 0);
  generation.model()->scratch_bytes = 1 << 20;
  {
    auto executor = NewLaneExecutor(generation, {}, outputs, SystemClock());
    ASSERT_TRUE(executor.ok()) << executor.status();
    EXPECT_GE(generation.device().in_use_bytes(), 2u << 20);
    const Sent sent = Send(**executor, 1);
    sent.answer->Wait();
    EXPECT_EQ(sent.answer->code(), absl::StatusCode::kOk) << sent.answer->message();
    (*executor)->Stop();
  }
  EXPECT_EQ(generation.device().in_use_bytes(), 0u);
  EXPECT_EQ(generation.memory().live_total(), 0u);
  EXPECT_EQ(generation.memory().peak(Region::kScratch), 1u << 20);
}

TEST(LaneExecutor, ScratchThatDoesNotFitIsRefusedByName) {
  FakeGeneration::Options options;
  options.lanes = 3;
  options.scratch_bytes = 30 << 20;
  FakeGeneration generation(options);
  HostPool outputs(1 << 20, 0);
  const auto executor = NewLaneExecutor(generation, {}, outputs, SystemClock());
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Contains(std::string(executor.status().message()), "of 3 of model 'fake'"))
      << executor.status();
  EXPECT_EQ(generation.device().in_use_bytes(), 0u);
}

TEST(LaneExecutor, ItsThreadsHaveNames) {
  FakeGeneration::Options options;
  options.lanes = 2;
  Bench bench(options);
  const auto count = [](const std::string& name) {
    int found = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string comm;
      std::getline(std::ifstream(task.path() / "comm") >> std::ws, comm);
      found += comm == name;
    }
    return found;
  };
  EXPECT_TRUE(Eventually([&] { return count("mk-lane") == 2 && count("mk-lane-timer") == 1; }));
}

// Field case A13: what nobody waits for any more is not computed.
TEST(LaneExecutor, A13ExpiredRequestsAreNotRun) {
  for (const bool polls : {true, false}) {
    Bench bench;
    bench.model().work_ns = 200 * kMs;
    bench.model().polls = polls;
    std::vector<Sent> all;
    const int64_t deadline_ns = SystemClock().NowNs() + 300 * kMs;
    for (int i = 0; i < 20; ++i) all.push_back(Send(bench.executor(), i, deadline_ns));
    int expired = 0;
    for (const Sent& sent : all) {
      sent.answer->Wait();
      const absl::StatusCode code = sent.answer->code();
      EXPECT_TRUE(code == absl::StatusCode::kOk || code == absl::StatusCode::kDeadlineExceeded);
      expired += code == absl::StatusCode::kDeadlineExceeded;
      if (sent.answer->times().started_ns == 0) {
        EXPECT_EQ(code, absl::StatusCode::kDeadlineExceeded);
      }
    }
    EXPECT_LE(bench.model().started, 3);
    EXPECT_LE(bench.model().completed, 2);
    EXPECT_GE(expired, 18);
    EXPECT_EQ(bench.executor().queued(), 0u);
    EXPECT_EQ(bench.executor().running(), 0u);
  }
}

}  // namespace
}  // namespace mk
