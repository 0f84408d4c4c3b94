#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/run/run_model.h"

namespace mk {
namespace {

using absl::StatusCode;

TEST(HostPool, NoSizeHangsOrPassesTheLimit) {
  HostPool pool(UINT64_MAX, 0);
  for (const uint64_t size : {(uint64_t{1} << 62) + 1, (uint64_t{1} << 63) + 1, UINT64_MAX}) {
    EXPECT_EQ(pool.Allocate(size).status().code(), StatusCode::kResourceExhausted) << size;
  }
  EXPECT_EQ(pool.in_use_bytes(), 0u);
}

TEST(HostPool, MovedBlocksAreGivenBackOnce) {
  HostPool pool(1 << 20, 0);
  HostBlock a = *pool.Allocate(5000), b = *pool.Allocate(9000);
  const uint64_t both = pool.in_use_bytes();
  HostBlock c = std::move(a);
  EXPECT_TRUE(a.empty());  // NOLINT: what a move leaves behind
  EXPECT_EQ(pool.in_use_bytes(), both);
  c = HostBlock();
  EXPECT_LT(pool.in_use_bytes(), both);
  c = std::move(b);
  EXPECT_EQ(c.size(), 9000u);
  c = HostBlock();
  EXPECT_EQ(pool.in_use_bytes(), 0u);
}

TEST(HostPool, SeveralThreadsStayWithinTheLimit) {
  HostPool pool(100'000, 50'000);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (uint64_t i = 0; i < 500; ++i) {
        auto block = pool.Allocate(1 + (i * 7919 + t) % 40'000);
        EXPECT_LE(pool.in_use_bytes(), 100'000u);
        if (block.ok()) std::memset(block->data(), static_cast<int>(t), block->size());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.in_use_bytes(), 0u);
}

TEST(HostPool, BoundsReusesAndOutlivesItsOwner) {
  auto pool = std::make_unique<HostPool>(1 << 20, 1 << 20);
  void* first = nullptr;
  {
    auto block = pool->Allocate(100'000);
    ASSERT_TRUE(block.ok());
    first = block->data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    EXPECT_GE(pool->in_use_bytes(), 100'000u);
    EXPECT_EQ(pool->Allocate(1 << 20).status().code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(pool->Allocate(UINT64_MAX).status().code(), StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(pool->in_use_bytes(), 0u);
  HostBlock again = *pool->Allocate(99'000);
  EXPECT_EQ(again.data(), first);
  EXPECT_TRUE(pool->Allocate(0)->empty());
  pool.reset();
  std::memset(again.data(), 1, again.size());
}

// ---- RunModel against packs made of plain functions
// ---------------------------------------------------------------

using Body = std::function<mk_status(const mk_run*)>;

class RunModelTest : public testing::Test {
 protected:
  absl::StatusOr<InferResponse> Run(Body body, InferRequest request = {},
                                    int64_t deadline_ns = INT64_MAX) {
    mk_pack pack = {};
    pack.name = "fake";
    pack.run = [](mk_model* model, const mk_run* run) {
      return (*reinterpret_cast<Body*>(model))(run);
    };
    StopSignal stop;
    stop.deadline_ns = deadline_ns;
    stop.cancelled = cancelled_;
    return RunModel({pack, reinterpret_cast<mk_model*>(&body), signature_, *arena_, pool_, clock_},
                    request, stop);
  }
  static mk_status Produce(const mk_run* run, const char* name, std::vector<int64_t> shape,
                           uint64_t size, mk_dtype dtype = MK_DTYPE_UINT8) {
    void* data = nullptr;
    const mk_status s = run->output(run->self, name, dtype, static_cast<mk_u32>(shape.size()),
                                    shape.data(), size, &data);
    if (s == MK_OK && size != 0) std::memset(data, 7, size);
    return s;
  }

  Signature signature_ = {
      {}, {{"A", MK_DTYPE_UINT8, {-1}, false}, {"B", MK_DTYPE_UINT8, {-1, 4}, false}}};
  std::unique_ptr<Device> device_ = *NewCpuDevice(1 << 24);
  MemoryAccount account_{{0, 4096, 0}};
  std::unique_ptr<Arena> arena_ = *Arena::Create(*device_, account_, 4096);
  HostPool pool_{1 << 20, 0};
  FakeClock clock_;
  bool cancelled_ = false;
};

TEST_F(RunModelTest, OutputsComeInTheOrderAskedForAndZeroSizedOnesToo) {
  const Body both = [](const mk_run* run) {
    if (mk_status s = Produce(run, "A", {3}, 3)) return s;
    return Produce(run, "B", {0, 4}, 0);
  };
  auto all = Run(both);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->outputs[0].name, "A");
  EXPECT_EQ(all->outputs[1].shape, (std::vector<int64_t>{0, 4}));
  EXPECT_TRUE(all->outputs[1].block.empty());
  InferRequest request;
  request.outputs = {"B"};
  auto one = Run(both, request);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->outputs.size(), 1u);
  EXPECT_EQ(account_.live(Region::kScratch), 0u);
}

TEST_F(RunModelTest, APackThatBreaksTheContractFailsItsRequestByName) {
  const struct {
    Body body;
    const char* says;
  } cases[] = {
      {[](const mk_run* r) { return Produce(r, "C", {1}, 1); }, "unknown output 'C'"},
      {[](const mk_run* r) { return Produce(r, "A", {1}, 1), Produce(r, "A", {1}, 1), MK_OK; },
       "output 'A' produced twice"},
      {[](const mk_run* r) { return Produce(r, "A", {1}, 1, MK_DTYPE_INT8); }, "INT8 of rank 1"},
      {[](const mk_run* r) {
         return Produce(r, "A", {1, 1}, 1);
       },
       "of rank 2"},
      {[](const mk_run* r) { return Produce(r, "A", {2}, 1); }, "1 bytes for shape [2]"},
      {[](const mk_run* r) { return Produce(r, "A", {-1}, 1); }, "dim 0 is -1"},
      {[](const mk_run* r) {
         return Produce(r, "B", {1, 3}, 3);
       },
       "dim 1 is 3"},
      {[](const mk_run*) { return MK_OK; }, "output 'A' was not produced"},
      {[](const mk_run*) { return 99; }, "unknown code 99"},
  };
  for (const auto& c : cases) {
    const auto result = Run(c.body);
    EXPECT_EQ(result.status().code(), StatusCode::kInternal) << c.says;
    EXPECT_NE(result.status().message().find(c.says), std::string_view::npos) << result.status();
  }
}

// The pack's own scratch scopes and its declared bytes have nothing to do with its outputs.
TEST_F(RunModelTest, AnOutputNotAskedForOutlivesScratchScopesAndCostsNoScratch) {
  InferRequest request;
  request.outputs = {"A"};
  const auto result = Run(
      [](const mk_run* run) {
        const mk_u64 mark = run->scratch_mark(run->self);
        void *b = nullptr, *scratch = nullptr;
        const mk_i64 shape[] = {2048, 4};
        EXPECT_EQ(run->output(run->self, "B", MK_DTYPE_UINT8, 2, shape, 8192, &b), MK_OK);
        run->scratch_release(run->self, mark);
        EXPECT_EQ(run->scratch(run->self, 4096, &scratch), MK_OK);
        std::memset(scratch, 1, 4096);
        std::memset(b, 2, 8192);
        EXPECT_EQ(static_cast<char*>(scratch)[4095], 1);
        return Produce(run, "A", {1}, 1);
      },
      request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs.size(), 1u);
  EXPECT_LE(pool_.in_use_bytes(), 4096u);  // B's is back
}

TEST_F(RunModelTest, AMissingOutputIsABreachEvenIfNobodyAskedForIt) {
  InferRequest request;
  request.outputs = {"A"};
  const auto result = Run([](const mk_run* run) { return Produce(run, "A", {1}, 1); }, request);
  EXPECT_EQ(result.status(), absl::InternalError("pack 'fake': output 'B' was not produced"));
}

TEST_F(RunModelTest, OutputsComeInTheRequestsOrder) {
  InferRequest request;
  request.outputs = {"B", "A"};
  const auto result = Run(
      [](const mk_run* run) {
        Produce(run, "A", {1}, 1);
        return Produce(run, "B", {1, 4}, 4);
      },
      request);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outputs[0].name, "B");
  EXPECT_EQ(result->outputs[1].name, "A");
}

TEST_F(RunModelTest, BytesOutputsMustBeWellPacked) {
  signature_.outputs = {{"T", MK_DTYPE_BYTES, {-1}, false}};
  const auto run = [this](const std::string& packed, int64_t count) {
    return Run([packed, count](const mk_run* run) {
             void* data = nullptr;
             const mk_i64 shape[] = {count};
             const mk_status s =
                 run->output(run->self, "T", MK_DTYPE_BYTES, 1, shape, packed.size(), &data);
             if (!packed.empty()) std::memcpy(data, packed.data(), packed.size());
             return s;
           })
        .status();
  };
  const std::string one("\x02\0\0\0ab", 6);
  EXPECT_TRUE(run(one, 1).ok());
  EXPECT_TRUE(run("", 0).ok());
  const absl::Status refused = run(one, 2);
  EXPECT_EQ(refused.code(), StatusCode::kInternal);
  EXPECT_EQ(refused.message(),
            "pack 'fake': output 'T': its bytes are not the 2 elements of its shape");
  EXPECT_FALSE(run(one.substr(0, 5), 1).ok());
}

TEST_F(RunModelTest, AFullHostPoolFailsTheRequestWithTheNumbers) {
  const auto result = Run([](const mk_run* run) { return Produce(run, "A", {2 << 20}, 2 << 20); });
  EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(result.status().message().find("2097152 bytes asked with 0 of 1048576"),
            std::string_view::npos)
      << result.status();
}

TEST_F(RunModelTest, ThePacksMessageIsMadePrintableAndCut) {
  const auto result = Run([](const mk_run* run) {
    const std::string message = "line\n\x1b[31m" + std::string(100'000, 'x');
    run->set_error(run->self, message.data(), message.size());
    return static_cast<mk_status>(MK_INVALID_ARGUMENT);
  });
  EXPECT_EQ(result.status().message().substr(0, 16), "line\\x0a\\x1b[31m");
  EXPECT_LT(result.status().message().size(), 1100u);
  const auto silent = Run([](const mk_run*) { return static_cast<mk_status>(MK_UNAVAILABLE); });
  EXPECT_EQ(silent.status().code(), StatusCode::kUnavailable);
}

TEST_F(RunModelTest, CodesOutsideOfTheContractAreInternal) {
  for (const mk_status code : {-1, 16, 17, INT32_MAX, INT32_MIN}) {
    const auto result = Run([code](const mk_run*) { return code; });
    EXPECT_EQ(result.status().code(), StatusCode::kInternal) << code;
  }
}

TEST_F(RunModelTest, ThePacksOwnErrorKeepsItsCodeAndMessage) {
  const auto result = Run([](const mk_run* run) {
    run->set_error(run->self, "side 31 is no multiple of 32", 28);
    return static_cast<mk_status>(MK_INVALID_ARGUMENT);
  });
  EXPECT_EQ(result.status(), absl::InvalidArgumentError("side 31 is no multiple of 32"));
}

TEST_F(RunModelTest, ScratchPastTheDeclaredBytesIsRefused) {
  const auto result = Run([](const mk_run* run) {
    void* data = nullptr;
    return run->scratch(run->self, 4097, &data);
  });
  EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(result.status().message().find("4097"), std::string_view::npos);
}

TEST_F(RunModelTest, CancelAndDeadlineAreSeenAndToldApart) {
  const Body wait = [](const mk_run* run) {
    return static_cast<mk_status>(run->cancelled(run->self) ? MK_CANCELLED : MK_INTERNAL);
  };
  EXPECT_EQ(Run(wait, {}, clock_.NowNs()).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Run(wait).status().code(), StatusCode::kInternal);
  cancelled_ = true;
  EXPECT_EQ(Run(wait).status().code(), StatusCode::kCancelled);
}

TEST_F(RunModelTest, ParametersAreTyped) {
  InferRequest request;
  request.parameters = {
      {"i", int64_t{5}}, {"u", uint64_t{6}}, {"d", 1.5}, {"s", std::string("x")}, {"b", true}};
  const auto result = Run(
      [](const mk_run* run) {
        mk_i64 i = 0, u = 0;
        double d = 0;
        mk_i32 b = 0;
        const char* text = nullptr;
        mk_u64 size = 0;
        EXPECT_TRUE(run->parameter_int64(run->self, "i", &i) && i == 5);
        EXPECT_TRUE(run->parameter_int64(run->self, "u", &u) && u == 6);
        EXPECT_FALSE(run->parameter_int64(run->self, "d", &i));
        EXPECT_TRUE(run->parameter_double(run->self, "d", &d) && d == 1.5);
        EXPECT_TRUE(run->parameter_string(run->self, "s", &text, &size) && size == 1);
        EXPECT_TRUE(run->parameter_bool(run->self, "b", &b) && b == 1);
        EXPECT_FALSE(run->parameter_bool(run->self, "none", &b));
        Produce(run, "A", {1}, 1);
        return Produce(run, "B", {1, 4}, 4);
      },
      request);
  EXPECT_TRUE(result.ok()) << result.status();
}

}  // namespace
}  // namespace mk
