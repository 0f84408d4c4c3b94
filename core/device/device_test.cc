#include "core/device/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "core/device/arena.h"
#include "core/device/host_services.h"
#include "core/device/sgemm.h"
#include "core/device/thread_pool.h"

namespace mk {
namespace {

std::unique_ptr<Device> Cpu(uint64_t budget) { return *NewCpuDevice(budget); }

TEST(CpuDevice, MemoryIsZeroedAlignedAndGivenBack) {
  auto device = Cpu(1 << 20);
  {
    auto buffer = device->Allocate(1000);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*buffer)->data()) % 64, 0u);
    EXPECT_EQ(static_cast<char*>((*buffer)->data())[999], 0);
    EXPECT_EQ(device->in_use_bytes(), 1000u);
  }
  EXPECT_EQ(device->in_use_bytes(), 0u);
}

TEST(CpuDevice, RefusesWhatPassesItsBudgetWithTheNumbers) {
  auto device = Cpu(1000);
  auto held = device->Allocate(600);
  ASSERT_TRUE(held.ok());
  for (uint64_t size : {uint64_t{401}, UINT64_MAX, UINT64_MAX - 500}) {
    const auto refused = device->Allocate(size);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted) << size;
    EXPECT_NE(refused.status().message().find("600 of 1000"), std::string_view::npos);
  }
  EXPECT_TRUE(device->Allocate(400).ok());
  EXPECT_TRUE(device->Allocate(0).ok());
}

TEST(CpuDevice, ZeroBudgetTakesFromMemAvailable) {
  EXPECT_GT(Cpu(0)->facts().budget_bytes, 1u << 20);
  EXPECT_GE(Cpu(0)->facts().compute_units, 1);
}

TEST(CpuDevice, CanaryAnswersAndDeviceCodeIsRefused) {
  auto device = Cpu(1 << 20);
  EXPECT_TRUE(device->Canary().ok());
  EXPECT_EQ(device->LoadModule(nullptr, 0).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(MemoryAccount, CountsLiveAndPeakAndRefusesPastDeclared) {
  MemoryAccount account({100, 0, 0});
  EXPECT_TRUE(account.Charge(Region::kWeights, 60).ok());
  const absl::Status refused = account.Charge(Region::kWeights, 41);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("41 bytes asked with 60 live pass the 100"),
            std::string_view::npos);
  account.Release(Region::kWeights, 60);
  EXPECT_EQ(account.live_total(), 0u);
  EXPECT_EQ(account.peak(Region::kWeights), 60u);
}

TEST(MemoryAccountDeathTest, ReleasingMoreThanLiveAborts) {
  MemoryAccount account({100, 0, 0});
  EXPECT_DEATH(account.Release(Region::kWeights, 1), "1 bytes released with 0 live");
}

TEST(Arena, AddressesRepeatAndScopesNest) {
  auto device = Cpu(1 << 24);
  MemoryAccount account({0, 1024, 0});
  auto arena = *Arena::Create(*device, account, 1024);
  void* first = *arena->Allocate(10);
  const uint64_t mark = arena->Mark();
  void* second = *arena->Allocate(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second) % 64, 0u);
  std::memset(second, 1, 100);
  arena->Release(mark);
  EXPECT_EQ(*arena->Allocate(7), second);
  arena->Reset();
  EXPECT_EQ(*arena->Allocate(10), first);
  EXPECT_EQ(arena->high_water_bytes(), 64u + 128u);
  EXPECT_EQ(account.peak(Region::kScratch), 64u + 128u);
  arena->Reset();
  EXPECT_EQ(account.live(Region::kScratch), 0u);
}

TEST(Arena, RefusesWhatPassesItsCapacity) {
  auto device = Cpu(1 << 24);
  MemoryAccount account({0, 128, 0});
  auto arena = *Arena::Create(*device, account, 128);
  EXPECT_EQ(arena->Allocate(129).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(arena->Allocate(UINT64_MAX).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(arena->Allocate(128).ok());
  EXPECT_EQ(arena->Allocate(0).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Arena, ZeroSizedAllocationsAreDistinctAndFutureMarksIgnored) {
  auto device = Cpu(1 << 24);
  MemoryAccount account({0, 1024, 0});
  auto arena = *Arena::Create(*device, account, 1024);
  EXPECT_NE(*arena->Allocate(0), *arena->Allocate(0));
  arena->Release(99);
  EXPECT_EQ(arena->Mark(), 2u);
}

TEST(ThreadPool, CoversEachIndexOnceFromSeveralCallers) {
  ThreadPool pool(4);
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t) {
    callers.emplace_back([&pool] {
      for (int64_t count : {0, 1, 7, 1000, 4097}) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
        pool.ParallelFor(
            count, 3,
            [](void* arg, int64_t begin, int64_t end) {
              auto& seen = *static_cast<std::vector<std::atomic<int>>*>(arg);
              for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
            },
            &hits);
        for (const auto& hit : hits) ASSERT_EQ(hit.load(), 1);
      }
    });
  }
  for (auto& caller : callers) caller.join();
}

TEST(ThreadPool, NestedCallsRunInline) {
  ThreadPool pool(2);
  struct State {
    ThreadPool& pool;
    std::atomic<int> sum{0};
  } state{pool};
  pool.ParallelFor(
      8, 1,
      [](void* arg, int64_t, int64_t) {
        auto& outer = *static_cast<State*>(arg);
        outer.pool.ParallelFor(
            10, 1,
            [](void* inner, int64_t begin, int64_t end) {
              static_cast<State*>(inner)->sum += static_cast<int>(end - begin);
            },
            arg);
      },
      &state);
  EXPECT_EQ(state.sum.load() % 10, 0);
  EXPECT_GE(state.sum.load(), 10);
}

// Against the plain formula, ragged on purpose.
TEST(Sgemm, MatchesTheFormulaTransposedStridedAndRagged) {
  for (const int m : {1, 3, 17}) {
    for (const int n : {1, 5, 33}) {
      for (const int k : {1, 4, 29}) {
        for (int flags = 0; flags < 4; ++flags) {
          const bool ta = flags & 1, tb = flags & 2;
          const int lda = (ta ? m : k) + 2, ldb = (tb ? k : n) + 1, ldc = n + 3;
          std::vector<float> a(static_cast<size_t>((ta ? k : m) * lda)),
              b(static_cast<size_t>((tb ? n : k) * ldb)), c(static_cast<size_t>(m * ldc), 2.0f);
          for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
          for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
          ASSERT_TRUE(
              Sgemm({ta, tb, m, n, k, 2.0f, 0.5f, a.data(), lda, b.data(), ldb, c.data(), ldc})
                  .ok());
          for (int i = 0; i < m; ++i) {
            for (int j = 0; j < n; ++j) {
              float want = 0;
              for (int p = 0; p < k; ++p) {
                want += a[static_cast<size_t>(ta ? p * lda + i : i * lda + p)] *
                        b[static_cast<size_t>(tb ? j * ldb + p : p * ldb + j)];
              }
              ASSERT_FLOAT_EQ(c[static_cast<size_t>(i * ldc + j)], 2 * want + 1.0f)
                  << m << " " << n << " " << k << " flags " << flags << " at " << i << "," << j;
            }
          }
        }
      }
    }
  }
}

TEST(Sgemm, RefusesShortStridesAndNegativeSizesByName) {
  float x[4] = {};
  EXPECT_EQ(Sgemm({0, 0, -1, 1, 1, 1, 0, x, 1, x, 1, x, 1}).code(),
            absl::StatusCode::kInvalidArgument);
  const absl::Status status = Sgemm({0, 0, 2, 2, 2, 1, 0, x, 1, x, 2, x, 2});
  EXPECT_EQ(status.message(), "sgemm: lda 1 < 2");
}

TEST(Sgemm, EmptyProductScalesByBeta) {
  float c[2] = {4, 6};
  EXPECT_TRUE(Sgemm({0, 0, 1, 2, 0, 1, 0.5f, nullptr, 1, nullptr, 2, c, 2}).ok());
  EXPECT_EQ(c[0], 2);
  EXPECT_EQ(c[1], 3);
  EXPECT_FALSE(SgemmKernelName().empty());
}

TEST(HostServices, OffersTheTablesOfTheContract) {
  HostServices services({2, 100});
  EXPECT_EQ(services.Find("mk.nothing/1"), nullptr);
  const auto* parallel =
      static_cast<const mk_parallel_service*>(services.Find(MK_SERVICE_PARALLEL));
  ASSERT_NE(parallel, nullptr);
  EXPECT_EQ(parallel->threads(parallel->self), 2);
  const auto* image = static_cast<const mk_image_service*>(services.Find(MK_SERVICE_IMAGE));
  mk_image_info info = {sizeof info, 0, 0, 0};
  EXPECT_EQ(image->info(image->self, "nonsense", 8, &info), MK_INVALID_ARGUMENT);
  EXPECT_STREQ(image->last_error(image->self), "image: 8 bytes that are neither JPEG nor PNG");
}

}  // namespace
}  // namespace mk
