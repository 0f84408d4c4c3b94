#include "core/device/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "core/device/arena.h"
#include "core/device/host_services.h"
#include "core/device/open_device.h"
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
  EXPECT_EQ(device->LoadModule({}).status().code(), absl::StatusCode::kUnimplemented);
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

TEST(MemoryAccount, SeveralThreadsNeverPassTheDeclaredBytes) {
  MemoryAccount account({0, 100, 0});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&account] {
      for (int i = 0; i < 2000; ++i) {
        if (!account.Charge(Region::kScratch, 40).ok()) continue;
        EXPECT_LE(account.live(Region::kScratch), 100u);
        account.Release(Region::kScratch, 40);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(account.live_total(), 0u);
  EXPECT_LE(account.peak(Region::kScratch), 80u);
  EXPECT_GE(account.peak(Region::kScratch), 40u);
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

TEST(Arena, MoreThanTheDevicesBudgetIsRefused) {
  auto device = Cpu(1 << 24);
  MemoryAccount account({0, UINT64_MAX, 0});
  for (const uint64_t capacity : {uint64_t{1} << 25, uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_EQ(Arena::Create(*device, account, capacity).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
}

TEST(Arena, GivesItsDeviceMemoryBack) {
  auto device = Cpu(1 << 24);
  MemoryAccount account({0, 1024, 0});
  {
    auto arena = *Arena::Create(*device, account, 1024);
    ASSERT_TRUE(arena->Allocate(100).ok());
  }
  EXPECT_EQ(device->in_use_bytes(), 0u);
  EXPECT_EQ(account.live_total(), 0u);
}

#if defined(__SANITIZE_ADDRESS__)
TEST(ArenaDeathTest, AnOverrunAndAUseAfterItsScopeAreCaught) {
  auto device = Cpu(1 << 24);
  MemoryAccount account({0, 1024, 0});
  auto arena = *Arena::Create(*device, account, 1024);
  auto* block = static_cast<volatile char*>(*arena->Allocate(100));
  ASSERT_TRUE(arena->Allocate(100).ok());
  EXPECT_DEATH(block[128] = 1, "use-after-poison");
  arena->Reset();
  EXPECT_DEATH(block[0] = 1, "use-after-poison");
}
#endif

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

TEST(ThreadPool, EmptyCallsNothingAndEveryRangeButTheLastHasItsGrain) {
  ThreadPool pool(3);
  struct State {
    std::atomic<int64_t> calls{0}, indices{0}, small{0};
  } state;
  const auto body = [](void* arg, int64_t begin, int64_t end) {
    auto& s = *static_cast<State*>(arg);
    ++s.calls;
    s.indices += end - begin;
    if (end - begin < 10) ++s.small;
  };
  pool.ParallelFor(0, 10, body, &state);
  pool.ParallelFor(-5, 10, body, &state);
  EXPECT_EQ(state.calls.load(), 0);
  pool.ParallelFor(95, 10, body, &state);
  EXPECT_EQ(state.indices.load(), 95);
  EXPECT_LE(state.small.load(), 1);
}

TEST(ThreadPool, CountsAndGrainsAtTheEndOfTheirRangeDoNotOverflow) {
  ThreadPool pool(4);
  for (const int64_t grain : {INT64_MIN, int64_t{1}, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX}) {
    std::atomic<int64_t> indices{0};
    pool.ParallelFor(
        INT64_MAX, grain,
        [](void* arg, int64_t begin, int64_t end) {
          EXPECT_GE(begin, 0);
          EXPECT_LT(begin, end);
          *static_cast<std::atomic<int64_t>*>(arg) += end - begin;
        },
        &indices);
    EXPECT_EQ(indices.load(), INT64_MAX) << grain;
  }
}

TEST(ThreadPool, WorkersSleepWhenThereIsNothingToDo) {
  ThreadPool pool(4);
  pool.ParallelFor(
      100, 1, [](void*, int64_t, int64_t) {}, nullptr);
  const auto cpu_ms = [] {
    timespec time = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto before = cpu_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_ms() - before, 100);
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

TEST(Sgemm, WhatWasInTheResultIsNotReadWhenBetaIsZero) {
  float a[2] = {1, 2}, b[2] = {3, 4}, c = std::nanf("");
  for (const int k : {2, 0}) {
    c = std::nanf("");
    ASSERT_TRUE(Sgemm({0, 0, 1, 1, k, 1, 0, a, 2, b, 1, &c, 1}).ok());
    EXPECT_EQ(c, k == 2 ? 11 : 0);
  }
}

TEST(Sgemm, SizesPastTheLibrariesAreRefused) {
  float x[1] = {};
  const int64_t huge = int64_t{1} << 31;
  EXPECT_EQ(Sgemm({0, 0, huge, 1, 1, 1, 0, x, 1, x, 1, x, 1}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Sgemm({0, 0, 1, 1, 1, 1, 0, x, huge, x, 1, x, 1}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Sgemm({0, 0, 0, 1, 1, 1, 0, nullptr, 1, x, 1, x, 1}).ok());
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
  uint8_t pixel = 0;
  EXPECT_EQ(image->decode(image->self, nullptr, 0, 1, &pixel, 1), MK_INVALID_ARGUMENT);
}

TEST(HostServices, AnImageTableSmallerThanItsWriterIsLeftAlone) {
  HostServices services({1, 100});
  const auto* image = static_cast<const mk_image_service*>(services.Find(MK_SERVICE_IMAGE));
  mk_image_info info = {8, 77, 78, 79};
  EXPECT_EQ(image->info(image->self, "nonsense", 8, &info), MK_INVALID_ARGUMENT);
  EXPECT_STREQ(image->last_error(image->self), "image: mk_image_info.struct_size 8 < 24");
  EXPECT_EQ(info.height, 79);
}

TEST(HostServices, SgemmAndThreadsWorkThroughTheirTables) {
  HostServices services({2, 100});
  const auto* blas = static_cast<const mk_blas_service*>(services.Find(MK_SERVICE_BLAS));
  const auto* parallel =
      static_cast<const mk_parallel_service*>(services.Find(MK_SERVICE_PARALLEL));
  struct State {
    const mk_blas_service& blas;
    float a[2] = {1, 2}, b[2] = {3, 4};
    float c[64] = {};
  } state{*blas};
  parallel->parallel_for(
      parallel->self, 64, 1,
      [](void* arg, mk_i64 begin, mk_i64 end) {
        auto& s = *static_cast<State*>(arg);
        for (mk_i64 i = begin; i < end; ++i) {
          const mk_sgemm_args args = {0, 0, 1, 1, 2, 1, 0, s.a, 2, s.b, 1, s.c + i, 1};
          EXPECT_EQ(s.blas.sgemm(s.blas.self, &args), MK_OK);
        }
      },
      &state);
  for (const float c : state.c) EXPECT_EQ(c, 11);
  const mk_sgemm_args wrong = {0, 0, 1, 1, 2, 1, 0, state.a, 1, state.b, 1, state.c, 1};
  EXPECT_EQ(blas->sgemm(blas->self, &wrong), MK_INVALID_ARGUMENT);
}

// What outlives scopes is taken from the other end.
TEST(Arena, TheEndIsApartFromScopesAndBothCount) {
  auto device = NewCpuDevice(1 << 30);
  MemoryAccount account({0, 4096, 0});
  auto arena = Arena::Create(**device, account, 4096);
  ASSERT_TRUE(arena.ok());
  Arena& a = **arena;
  char* const input = static_cast<char*>(*a.AllocateEnd(100));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(input) % 64, 0u);
  const uint64_t mark = a.EndMark();
  EXPECT_GE(mark, 100u);
  void* const scratch = *a.Allocate(100);
  char* const output = static_cast<char*>(*a.AllocateEnd(100));
  EXPECT_LT(output, input);
  a.Release(0);
  std::memset(output, 1, 100);  // still there
  EXPECT_EQ(*a.Allocate(100), scratch);
  EXPECT_FALSE(a.AllocateEnd(4000).ok());
  EXPECT_FALSE(a.Allocate(4000).ok());
  a.ReleaseEnd(mark);
  EXPECT_EQ(*a.AllocateEnd(100), output);
  EXPECT_EQ(account.live(Region::kScratch), a.EndMark() + 128);
  a.Reset();
  EXPECT_EQ(account.live(Region::kScratch), 0u);
  EXPECT_EQ(*a.AllocateEnd(100), input);  // addresses repeat
  EXPECT_FALSE(a.AllocateEnd(UINT64_MAX).ok());
}

TEST(OpenDevice, TakesTheNamesItKnowsAndNoOther) {
  OpenDeviceOptions options;
  options.budget_bytes = 1 << 20;
  EXPECT_EQ((*OpenDevice(options))->facts().kind, "cpu");
  for (const char* name : {"", "gpu", "cuda0", "cuda:", "cuda:x", "CPU"}) {
    options.name = name;
    EXPECT_EQ(OpenDevice(options).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  options.name = "cuda:999";  // on no machine, with or without a driver
  const auto none = OpenDevice(options);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(none.status().message().substr(0, 19), "device 'cuda:999': ");
}

}  // namespace
}  // namespace mk
