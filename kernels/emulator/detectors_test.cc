// Every detector finds the kernel that is broken on purpose, in every schedule, and stays silent on
// its right neighbour.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "kernels/emulator/broken_emulated.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/samples/samples_params.h"
#include "kernels/emulator/sweep.h"

namespace mk {
namespace emu {
namespace {

constexpr uint32_t kThreads = 64;
constexpr uint32_t kElements = 256;

struct Bench {
  Bench() {
    std::vector<float> values(kElements);
    for (uint32_t i = 0; i < kElements; ++i) values[i] = static_cast<float>(i);
    x_host = values;
    x = static_cast<const float*>(
        emulator.memory().Adopt(x_host.data(), kElements * sizeof(float), "x", true));
  }
  ~Bench() { emulator.memory().Free(const_cast<float*>(x)); }

  Report Run(const std::string& kernel, const Options& options = {}, uint32_t blocks = 1,
             uint32_t threads = kThreads) {
    y = std::make_unique<DeviceArray<float>>(&emulator.memory(), "y", kElements);
    if (blocks > 1) y->Set(std::vector<float>(kElements, 0.0f));
    const samples::BrokenParams params = {x, y->device(), static_cast<mk_i32>(kElements)};
    return emulator.Run(mk_emulated_broken, kernel, {{blocks}, {threads}}, params, options);
  }

  Emulator emulator;
  std::vector<float> x_host;
  const float* x;
  std::unique_ptr<DeviceArray<float>> y;
};

// The first line behind `kernel`'s name that holds `text`.
int LineOf(const std::string& kernel, const std::string& text) {
  std::ifstream file("kernels/emulator/samples/broken.cu");
  std::string line;
  bool inside = false;
  for (int number = 1; std::getline(file, line); ++number) {
    inside = inside || line.find(" " + kernel + "(") != std::string::npos;
    if (inside && line.find(text) != std::string::npos) return number;
  }
  return 0;
}

struct Broken {
  const char* kernel;
  FindingKind kind;
  uint32_t blocks = 1;
  FindingKind or_kind = kind;  // where the order decides which comes first
};

constexpr Broken kBroken[] = {
    {"mk_broken_missing_barrier", FindingKind::kRace},
    {"mk_broken_missing_trailing_barrier", FindingKind::kRace},
    {"mk_broken_missing_warp_sync", FindingKind::kRace},
    {"mk_broken_warp_sync_across_warps", FindingKind::kRace},
    {"mk_broken_plain_beside_atomic", FindingKind::kRace},
    {"mk_broken_bytes_overlap", FindingKind::kRace},
    {"mk_broken_named_barriers", FindingKind::kRace, 1, FindingKind::kDivergence},
    {"mk_broken_blocks_share_a_word", FindingKind::kRace, 2},
    {"mk_broken_last_block_without_fence", FindingKind::kRace, 4},
    {"mk_broken_missing_wait", FindingKind::kAsyncRead},
    {"mk_broken_wait_for_too_few", FindingKind::kAsyncRead},
    {"mk_broken_missing_commit", FindingKind::kAsyncRead},
    {"mk_broken_shuffle_in_branch", FindingKind::kDivergence},
    {"mk_broken_barrier_in_branch", FindingKind::kDivergence},
    {"mk_broken_lane_waits_elsewhere", FindingKind::kDivergence},
    {"mk_broken_deadlock", FindingKind::kDeadlock},
    {"mk_broken_source_lane", FindingKind::kBadCollective},
    {"mk_broken_own_mask", FindingKind::kBadCollective},
    {"mk_broken_spin", FindingKind::kNoProgress},
    {"mk_broken_uninitialised_shared", FindingKind::kUninitialised},
    {"mk_broken_uninitialised_global", FindingKind::kUninitialised},
    {"mk_broken_shared_bounds", FindingKind::kOutOfBounds},
    {"mk_broken_global_bounds", FindingKind::kOutOfBounds},
    {"mk_broken_matrix_of_global", FindingKind::kOutOfBounds},
    {"mk_broken_alignment", FindingKind::kMisaligned},
    {"mk_broken_writes_input", FindingKind::kReadOnlyWrite},
    {"mk_broken_too_much_shared", FindingKind::kSharedOverflow},
    {"mk_broken_assertion", FindingKind::kAssertion},
};

TEST(Detectors, FindEachBrokenKernelInEverySchedule) {
  for (const Broken& broken : kBroken) {
    for (const Schedule schedule : kAllSchedules) {
      for (const AsyncCopies async : {AsyncCopies::kLazy, AsyncCopies::kEager}) {
        Options options;
        options.schedule = schedule;
        options.async = async;
        Bench bench;
        const Report report = bench.Run(broken.kernel, options, broken.blocks);
        ASSERT_FALSE(report.ok()) << broken.kernel << ", " << OptionsText(options);
        // A racing load may first of all be one of what nobody wrote yet.
        EXPECT_TRUE(report.Has(broken.kind) || report.Has(broken.or_kind))
            << broken.kernel << ", " << OptionsText(options) << "\n"
            << report.Text();
      }
    }
  }
}

// Whether the warps' order hides it depends on the schedule: the wait is the lane's own, the
// barrier is missing.
TEST(Detectors, FindAWaitWithoutABarrier) {
  for (const Schedule schedule : kAllSchedules) {
    Options options;
    options.schedule = schedule;
    Bench bench;
    const Report report = bench.Run("mk_broken_wait_without_barrier", options);
    EXPECT_TRUE(report.Has(FindingKind::kRace) || report.Has(FindingKind::kAsyncRead) ||
                report.Has(FindingKind::kUninitialised))
        << report.Text();
  }
}

TEST(Detectors, AreSilentOnRightKernels) {
  for (const char* kernel :
       {"mk_right_warp_sync", "mk_right_halves_of_a_word", "mk_right_named_barriers",
        "mk_right_shuffle_in_branch", "mk_right_early_exit"}) {
    Bench bench;
    const SweepResult sweep = Sweep(
        [&](const Options& options) { return bench.Run(kernel, options); },
        [&] {
          const std::vector<float> y = bench.y->Host();
          return std::string(reinterpret_cast<const char*>(y.data()), y.size() * sizeof(float));
        });
    EXPECT_TRUE(sweep.ok) << kernel << ": " << sweep.text;
    EXPECT_EQ(sweep.runs, 8);
  }
}

TEST(Detectors, NameBothSidesWithTheirLines) {
  Bench bench;
  Options options;
  options.uninitialised = false;
  const Report report = bench.Run("mk_broken_missing_barrier", options);
  ASSERT_FALSE(report.ok());
  const Finding& race = report.findings[0];
  ASSERT_EQ(race.parties.size(), 2u);
  const std::string load =
      "broken.cu:" + std::to_string(LineOf("mk_broken_missing_barrier", "Load(tile"));
  const std::string store =
      "broken.cu:" + std::to_string(LineOf("mk_broken_missing_barrier", "Store(tile"));
  EXPECT_EQ(SiteText(race.parties[0].site), load);
  EXPECT_EQ(SiteText(race.parties[1].site), store);
  EXPECT_NE(race.place.find("tile+0x"), std::string::npos) << race.place;
  EXPECT_NE(report.Text().find("loads at " + load), std::string::npos) << report.Text();
}

TEST(Detectors, NameTheBufferThatWasMissed) {
  Bench bench;
  const Report report = bench.Run("mk_broken_global_bounds");
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.findings[0].what.find("past the end of x of 1024 bytes"), std::string::npos)
      << report.Text();
}

TEST(Detectors, StopAtTheMostFindings) {
  Bench bench;
  Options options;
  options.max_findings = 1;
  EXPECT_EQ(bench.Run("mk_broken_named_barriers", options).findings.size(), 1u);
}

TEST(Detectors, GoOnAfterAnAbandonedLaunch) {
  Bench bench;
  EXPECT_TRUE(bench.Run("mk_broken_deadlock").Has(FindingKind::kDeadlock));
  EXPECT_TRUE(bench.Run("mk_right_warp_sync").ok());
}

TEST(DetectorsDeathTest, AnAccessAroundTheAccessorsFaults) {
  EXPECT_DEATH(
      {
        Bench bench;
        bench.Run("mk_broken_follows_pointer");
      },
      "");
}

TEST(Detectors, CountBankConflicts) {
  Bench bench;
  const Report report = bench.Run("mk_count_bank_conflicts", {}, 1, 32);
  ASSERT_TRUE(report.ok()) << report.Text();
  EXPECT_EQ(report.counts.shared_loads.requests, 32u);
  EXPECT_EQ(report.counts.shared_loads.units, 32u * 32u);  // each load takes 32 wavefronts
  EXPECT_EQ(report.counts.bank_conflicts(), 32u * 31u);
  EXPECT_EQ(report.counts.shared_stores.units, 32u);
}

TEST(Detectors, CountSectorsAndBytes) {
  Bench bench;
  const Report report = bench.Run("mk_count_sectors", {}, 1, 32);
  ASSERT_TRUE(report.ok()) << report.Text();
  EXPECT_EQ(report.counts.global_loads.bytes, 32u * 4u);
  EXPECT_EQ(report.counts.global_loads.units, 32u);  // a sector each
  EXPECT_EQ(report.counts.global_loads.ideal, 4u);
  EXPECT_EQ(report.counts.global_stores.units, 4u);
  EXPECT_EQ(report.counts.wasted_sectors(), 28u);
}

TEST(Launch, IsRefusedByName) {
  Bench bench;
  const auto what = [&](const std::string& kernel, LaunchShape shape) {
    const samples::BrokenParams params = {bench.x, nullptr, 0};
    const Report report = bench.emulator.Run(mk_emulated_broken, kernel, shape, params);
    EXPECT_TRUE(report.Has(FindingKind::kBadLaunch));
    return report.findings.empty() ? std::string() : report.findings[0].what;
  };
  EXPECT_EQ(what("mk_none", {{1}, {32}}), "no kernel of that name in module broken");
  EXPECT_EQ(what("mk_broken_spin", {{1}, {1025}}), "block 1025x1x1 not in 1..1024 threads");
  EXPECT_EQ(what("mk_broken_spin", {{1}, {32, 32, 2}}), "block 32x32x2 not in 1..1024 threads");
  EXPECT_EQ(what("mk_broken_spin", {{1, 65536}, {32}}),
            "grid 1x65536x1 is empty or beyond 2^31 blocks, or y or z > 65535");
  EXPECT_EQ(what("mk_broken_spin", {{1}, {32}, 200000}),
            "dynamic shared memory of 200000 bytes > 166912");
  const int wrong = 0;
  const Report report =
      bench.emulator.Run(mk_emulated_broken, "mk_broken_spin", {{1}, {32}}, wrong);
  ASSERT_TRUE(report.Has(FindingKind::kBadLaunch));
  EXPECT_EQ(report.findings[0].what, "params of 4 bytes, the kernel takes 24");
}

}  // namespace
}  // namespace emu
}  // namespace mk
