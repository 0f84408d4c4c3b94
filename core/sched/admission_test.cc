#include "core/sched/admission.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace mk {
namespace {

constexpr uint64_t kMax = UINT64_MAX;

TEST(Admit, DecidesByTable) {
  struct Case {
    QueueLimits limits;
    QueueLoad load;
    uint64_t bytes;
    absl::StatusCode code;
    const char* part;  // of the message
  };
  const Case cases[] = {
      {{2, 100}, {0, 0}, 0, absl::StatusCode::kOk, ""},
      {{2, 100}, {0, 0}, 100, absl::StatusCode::kOk, ""},
      {{2, 100}, {1, 60}, 40, absl::StatusCode::kOk, ""},
      {{2, 100}, {2, 0}, 0, absl::StatusCode::kUnavailable, "2 requests wait, the limit is 2"},
      {{2, 100}, {3, 0}, 0, absl::StatusCode::kUnavailable, "3 requests wait, the limit is 2"},
      {{0, 100}, {0, 0}, 0, absl::StatusCode::kUnavailable, "Exceeds maximum queue size: "},
      {{2, 100}, {1, 61}, 40, absl::StatusCode::kUnavailable, "61 bytes wait"},
      {{2, 100}, {1, 61}, 40, absl::StatusCode::kUnavailable, "limit of 100"},
      {{2, 100}, {1, 200}, 0, absl::StatusCode::kUnavailable, "200 bytes wait"},
      {{2, 100}, {0, 0}, 101, absl::StatusCode::kResourceExhausted, "101 input bytes"},
      // Waiting would not help, so the size is judged before the queue.
      {{2, 100}, {2, 100}, 101, absl::StatusCode::kResourceExhausted, "100 that may wait"},
      {{2, kMax}, {1, kMax}, 1, absl::StatusCode::kUnavailable, "bytes wait"},
      {{2, kMax}, {1, 1}, kMax, absl::StatusCode::kUnavailable, "bytes wait"},
      {{kMax, kMax}, {kMax - 1, kMax - 1}, 1, absl::StatusCode::kOk, ""},
  };
  for (const Case& c : cases) {
    const absl::Status status = Admit(c.limits, c.load, c.bytes);
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_NE(std::string(status.message()).find(c.part), std::string::npos) << status;
  }
}

TEST(GlobalAdmission, ChargesOnOkAndNothingOnRefusal) {
  GlobalAdmission global({2, 100});
  EXPECT_TRUE(global.Enter(60).ok());
  EXPECT_EQ(global.Enter(50).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(global.Enter(101).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(global.load().requests, 1u);
  EXPECT_EQ(global.load().bytes, 60u);
  EXPECT_TRUE(global.Enter(40).ok());
  const absl::Status full = global.Enter(0);
  EXPECT_EQ(full.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(full.message()).rfind("all packs: Exceeds maximum queue size: ", 0), 0u);
  global.Leave(60);
  EXPECT_TRUE(global.Enter(60).ok());
  global.Leave(60);
  global.Leave(40);
  EXPECT_EQ(global.load().requests, 0u);
  EXPECT_EQ(global.load().bytes, 0u);
}

TEST(GlobalAdmission, ManyThreadsNeverPassALimitAndReturnToZero) {
  constexpr QueueLimits kLimits = {5, 100};
  GlobalAdmission global(kLimits);
  std::atomic<bool> passed{false};
  std::atomic<int> entered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        const uint64_t bytes = static_cast<uint64_t>((i * 7 + t) % 60);
        if (!global.Enter(bytes).ok()) continue;
        entered.fetch_add(1);
        const QueueLoad load = global.load();
        if (load.requests > kLimits.max_requests || load.bytes > kLimits.max_bytes) passed = true;
        global.Leave(bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(passed);
  EXPECT_GT(entered, 0);
  EXPECT_EQ(global.load().requests, 0u);
  EXPECT_EQ(global.load().bytes, 0u);
}

}  // namespace
}  // namespace mk
