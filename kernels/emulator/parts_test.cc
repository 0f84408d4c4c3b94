// The emulator's parts by themselves: the order of threads, who races with whom, what an access
// costs, device memory.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "kernels/emulator/emulator.h"
#include "kernels/emulator/memory.h"
#include "kernels/emulator/race.h"
#include "kernels/emulator/scheduler.h"
#include "kernels/emulator/traffic.h"

namespace mk {
namespace emu {
namespace {

std::vector<uint32_t> OrderOfEnds(Schedule schedule, uint32_t threads, uint64_t seed = 1) {
  Options options;
  options.schedule = schedule;
  options.seed = seed;
  Scheduler scheduler(options);
  std::vector<uint32_t> order;
  uint32_t t = scheduler.Begin(0, threads);
  while (t != Scheduler::kNone) {
    order.push_back(t);
    scheduler.SetWaiting(t);
    t = scheduler.Next(t);
  }
  return order;
}

TEST(Scheduler, RunsEveryThreadOnceInItsOrder) {
  for (const uint32_t threads : {1u, 31u, 32u, 33u, 70u, 1024u}) {
    const std::vector<uint32_t> forward = OrderOfEnds(Schedule::kForward, threads);
    ASSERT_EQ(forward.size(), threads);
    for (uint32_t i = 0; i < threads; ++i) EXPECT_EQ(forward[i], i);
    for (const Schedule schedule : kAllSchedules) {
      const std::vector<uint32_t> order = OrderOfEnds(schedule, threads);
      EXPECT_EQ(std::set<uint32_t>(order.begin(), order.end()).size(), threads);
    }
  }
  EXPECT_EQ(OrderOfEnds(Schedule::kReverse, 3), (std::vector<uint32_t>{2, 1, 0}));
  EXPECT_NE(OrderOfEnds(Schedule::kShuffled, 64, 1), OrderOfEnds(Schedule::kShuffled, 64, 2));
  EXPECT_EQ(OrderOfEnds(Schedule::kShuffled, 64, 3), OrderOfEnds(Schedule::kShuffled, 64, 3));
}

TEST(Scheduler, StaysWithAWarpUnderSkew) {
  const std::vector<uint32_t> order = OrderOfEnds(Schedule::kWarpSkew, 128);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i] / 32, order[i / 32 * 32] / 32);
}

TEST(Scheduler, PermutesBlocks) {
  Options options;
  EXPECT_EQ(Scheduler(options).BlockOrder(3), (std::vector<uint64_t>{0, 1, 2}));
  options.schedule = Schedule::kReverse;
  EXPECT_EQ(Scheduler(options).BlockOrder(3), (std::vector<uint64_t>{2, 1, 0}));
  options.schedule = Schedule::kShuffled;
  const std::vector<uint64_t> order = Scheduler(options).BlockOrder(100);
  EXPECT_EQ(std::set<uint64_t>(order.begin(), order.end()).size(), 100u);
}

class RaceTest : public ::testing::Test {
 protected:
  RaceTest() {
    clocks_.BeginLaunch(4);
    clocks_.BeginBlock(0, 96);
  }
  bool Touch(uint32_t thread, uint64_t offset, uint32_t bytes, bool write, bool atomic = false) {
    return shadow_.Touch(clocks_, offset, bytes, write, clocks_.Now(thread, 1, atomic), &other_,
                         &other_writes_);
  }
  Clocks clocks_;
  RaceShadow shadow_;
  Stamp other_;
  bool other_writes_ = false;
};

TEST_F(RaceTest, WritesAndReadsOfOthers) {
  EXPECT_TRUE(Touch(0, 0, 4, true));
  EXPECT_TRUE(Touch(0, 0, 4, false));
  EXPECT_FALSE(Touch(1, 0, 4, false));
  EXPECT_EQ(other_.thread, 0);
  EXPECT_TRUE(other_writes_);
  clocks_.FullBarrier();
  EXPECT_TRUE(Touch(1, 0, 4, false));
  EXPECT_TRUE(Touch(40, 0, 4, false));
  EXPECT_FALSE(Touch(2, 0, 4, true));
  EXPECT_FALSE(other_writes_);
}

TEST_F(RaceTest, EveryReaderCounts) {
  Touch(3, 0, 4, false);
  Touch(5, 0, 4, false);   // of the same warp
  Touch(70, 0, 4, false);  // of another
  clocks_.Join({3, 70}, {3, 70}, false);
  clocks_.Join({5, 70}, {5, 70}, false);
  EXPECT_TRUE(Touch(70, 0, 4, true));  // has seen all of them

  Touch(3, 8, 4, false);
  Touch(5, 8, 4, false);
  EXPECT_FALSE(Touch(5, 8, 4, true));  // 3 read it
}

TEST_F(RaceTest, JoinOrdersThoseWhoTookPart) {
  Touch(0, 0, 4, true);
  clocks_.Join({0, 1}, {0, 1}, true);
  EXPECT_TRUE(Touch(1, 0, 4, false));
  EXPECT_FALSE(Touch(2, 0, 4, false));
  Touch(0, 4, 4, true);  // behind the join
  EXPECT_FALSE(Touch(1, 4, 4, false));
  clocks_.Join({0, 1}, {0, 1}, true);
  clocks_.Join({1, 2}, {1, 2}, true);  // through 1
  EXPECT_TRUE(Touch(2, 4, 4, false));
}

TEST_F(RaceTest, ArriveOnlyGives) {
  Touch(0, 0, 4, true);
  Touch(40, 4, 4, true);
  clocks_.Join({0, 40}, {40}, false);  // 0 arrives, 40 waits
  EXPECT_TRUE(Touch(40, 0, 4, false));
  EXPECT_FALSE(Touch(0, 4, 4, false));
}

TEST_F(RaceTest, BytesOfAWordAreApart) {
  EXPECT_TRUE(Touch(0, 0, 1, true));
  EXPECT_TRUE(Touch(1, 1, 1, true));
  EXPECT_TRUE(Touch(2, 2, 2, true));
  EXPECT_FALSE(Touch(3, 3, 1, false));
  EXPECT_FALSE(Touch(40, 0, 16, true));
}

TEST_F(RaceTest, AtomicsRaceOnlyWithPlainAccesses) {
  EXPECT_TRUE(Touch(0, 0, 4, true, true));
  EXPECT_TRUE(Touch(1, 0, 4, true, true));
  EXPECT_FALSE(Touch(1, 0, 4, false));  // 0's
}

TEST_F(RaceTest, BlocksAreOrderedByPublishedWorkOnly) {
  Touch(0, 0, 4, true);
  Touch(0, 4, 4, true);
  clocks_.Fence();
  clocks_.Atomic(100);
  clocks_.BeginBlock(1, 96);
  EXPECT_FALSE(Touch(0, 0, 4, false));
  EXPECT_EQ(clocks_.BlockOf(other_), 0u);
  clocks_.Atomic(100);
  EXPECT_TRUE(Touch(0, 4, 4, false));
  clocks_.BeginLaunch(1);
  clocks_.BeginBlock(0, 96);
  EXPECT_TRUE(Touch(5, 0, 4, true));  // launches follow each other
}

WarpAccess Access(uint32_t bytes, uint64_t first, uint64_t stride, uint32_t lanes = ~0u) {
  WarpAccess access;
  access.lanes = lanes;
  for (uint32_t i = 0; i < 32; ++i) {
    access.bytes[i] = static_cast<uint8_t>(bytes);
    access.address[i] = first + i * stride;
  }
  return access;
}

TEST(Traffic, SectorsOfAWarp) {
  const auto units = [](const WarpAccess& access) { return CountAccess(access, false).units; };
  EXPECT_EQ(units(Access(4, 0, 4)), 4u);
  EXPECT_EQ(units(Access(4, 16, 4)), 5u);  // not aligned
  EXPECT_EQ(units(Access(4, 0, 32)), 32u);
  EXPECT_EQ(units(Access(4, 0, 0)), 1u);  // all the same word
  EXPECT_EQ(units(Access(16, 0, 16)), 16u);
  EXPECT_EQ(units(Access(2, 0, 2)), 2u);
  EXPECT_EQ(units(Access(4, 0, 4, 1)), 1u);
  EXPECT_EQ(CountAccess(Access(4, 0, 32), false).ideal, 4u);
  EXPECT_EQ(CountAccess(Access(4, 0, 0), false).ideal, 1u);
}

TEST(Traffic, WavefrontsOfAWarp) {
  const auto units = [](const WarpAccess& access) { return CountAccess(access, true).units; };
  EXPECT_EQ(units(Access(4, 0, 4)), 1u);
  EXPECT_EQ(units(Access(4, 0, 8)), 2u);
  EXPECT_EQ(units(Access(4, 0, 128)), 32u);
  EXPECT_EQ(units(Access(4, 0, 132)), 1u);  // a pitch of 33 words
  EXPECT_EQ(units(Access(4, 0, 0)), 1u);    // broadcast
  EXPECT_EQ(units(Access(2, 0, 2)), 1u);
  EXPECT_EQ(units(Access(8, 0, 8)), 2u);
  EXPECT_EQ(units(Access(16, 0, 16)), 4u);
  EXPECT_EQ(units(Access(16, 0, 64)), 16u);  // 8 lanes at once, on two groups of four banks
  EXPECT_EQ(CountAccess(Access(16, 0, 64), true).ideal, 4u);
}

TEST(DeviceMemory, TagsItsAddressesAndKnowsItsBounds) {
  DeviceMemory memory;
  float host[4] = {1, 2, 3, 4};
  void* adopted = memory.Adopt(host, sizeof(host), "host");
  void* own = memory.Allocate(10, "own");
  EXPECT_EQ(memory.bytes(), 26u);
  EXPECT_NE(adopted, static_cast<void*>(host));
  EXPECT_EQ(DeviceMemory::HostAddress(adopted), static_cast<void*>(host));
  EXPECT_EQ(DeviceMemory::DeviceAddress(host), adopted);
  EXPECT_EQ(reinterpret_cast<uint64_t>(own) % 256, 0u);
  float back[4] = {};
  memory.CopyOut(back, adopted, sizeof(back));
  EXPECT_EQ(back[3], 4);
  const uint64_t at = reinterpret_cast<uint64_t>(DeviceMemory::HostAddress(own));
  ASSERT_NE(memory.Find(at + 9), nullptr);
  EXPECT_EQ(memory.Find(at + 9)->name, "own");
  EXPECT_EQ(memory.Find(at + 10), nullptr);
  EXPECT_EQ(memory.Nearest(at + 12), "2 bytes past the end of own of 10 bytes");
  EXPECT_EQ(memory.Nearest(at - 4), "4 bytes before own");
  memory.Free(own);
  EXPECT_EQ(memory.Find(at), nullptr);
  EXPECT_EQ(memory.bytes(), 16u);
}

TEST(DeviceMemory, ForgetsAndFreezesABuffer) {
  DeviceMemory memory;
  DeviceArray<uint32_t> array(&memory, "array", std::vector<uint32_t>{1, 2, 3});
  Buffer* buffer =
      memory.Find(reinterpret_cast<uint64_t>(DeviceMemory::HostAddress(array.device())));
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(buffer->written, std::vector<uint8_t>(12, 1));
  array.Reset();
  EXPECT_EQ(buffer->written, std::vector<uint8_t>(12, 0));
  EXPECT_EQ(array.Host(), std::vector<uint32_t>(3, 0xffffffffu));
  EXPECT_FALSE(buffer->read_only);
  array.Freeze();
  EXPECT_TRUE(buffer->read_only);
}

TEST(DeviceMemoryDeathTest, RefusesWhatItNeverGave) {
  DeviceMemory memory;
  float host[4] = {};
  void* device = memory.Adopt(host, sizeof(host), "host");
  EXPECT_DEATH(memory.CopyIn(device, host, sizeof(host) + 1), "");
  memory.Free(device);
  EXPECT_DEATH(memory.Free(device), "");
}

}  // namespace
}  // namespace emu
}  // namespace mk
