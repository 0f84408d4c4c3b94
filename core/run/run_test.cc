#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/run/run_model.h"
#include "core/run/validate.h"

namespace mk {
namespace {

using absl::StatusCode;

Signature OneInput(mk_dtype dtype, std::vector<int64_t> shape) {
  return {{{"IN", dtype, shape, false}}, {{"OUT", dtype, shape, false}}};
}

InferRequest Request(mk_dtype dtype, std::vector<int64_t> shape, const std::string& data) {
  auto bytes = std::make_shared<std::string>(data);
  InferRequest request;
  request.inputs = {{"IN", dtype, std::move(shape), bytes->data(), bytes->size()}};
  request.keep_alive = bytes;
  return request;
}

// Field case A01: a wildcard of the metadata left in the request.
TEST(ValidateRequest, A01NegativeDimsAreRefusedByName) {
  const Signature signature = OneInput(MK_DTYPE_UINT8, {-1, 16});
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{-1, 16}, {16, -1}, {INT64_MIN, 16}, {16, INT64_MIN}}) {
    InferRequest request = Request(MK_DTYPE_UINT8, shape, std::string(16, 'x'));
    const absl::Status status = ValidateRequest(signature, request);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("input 'IN'"), std::string_view::npos) << status;
    EXPECT_NE(status.message().find(shape[0] < 0 || shape[0] == INT64_MIN ? "dim 0" : "dim 1"),
              std::string_view::npos)
        << status;
  }
  InferRequest request = Request(MK_DTYPE_UINT8, {-1}, std::string(16, 'x'));
  EXPECT_NE(ValidateRequest(signature, request).message().find("rank 1, expected 2"),
            std::string_view::npos);
}

TEST(ValidateRequest, ProductsThatOverflowAreRefused) {
  const Signature signature = OneInput(MK_DTYPE_FP64, {-1, -1});
  InferRequest request = Request(MK_DTYPE_FP64, {INT64_MAX, 2}, "");
  EXPECT_EQ(ValidateRequest(signature, request).code(), StatusCode::kInvalidArgument);
  request = Request(MK_DTYPE_FP64, {INT64_MAX / 4, 1}, "");
  EXPECT_EQ(ValidateRequest(signature, request).code(), StatusCode::kInvalidArgument);
}

// Field case A03: zero-size tensors are legal.
TEST(ValidateRequest, A03ZeroSizedTensorsPass) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{{2, 0}, {0, 3}, {0, 0}}) {
    InferRequest request = Request(MK_DTYPE_FP32, shape, "");
    request.inputs[0].data = nullptr;
    EXPECT_TRUE(ValidateRequest(OneInput(MK_DTYPE_FP32, {-1, -1}), request).ok());
  }
  InferRequest bytes = Request(MK_DTYPE_BYTES, {0, 1}, "");
  EXPECT_TRUE(ValidateRequest(OneInput(MK_DTYPE_BYTES, {-1, 1}), bytes).ok());
}

// Field case A04: a declared shape smaller, or larger, than the bytes.
TEST(ValidateRequest, A04SurplusAndShortBytesAreRefusedWithBothNumbers) {
  const Signature signature = OneInput(MK_DTYPE_FP32, {-1, 5});
  InferRequest surplus = Request(MK_DTYPE_FP32, {1, 5}, std::string(28, 'x'));
  EXPECT_EQ(ValidateRequest(signature, surplus).message(), "input 'IN': expected 20 bytes, got 28");
  InferRequest shorter = Request(MK_DTYPE_FP32, {1, 5}, std::string(12, 'x'));
  EXPECT_EQ(ValidateRequest(signature, shorter).message(), "input 'IN': expected 20 bytes, got 12");
}

TEST(ValidateRequest, UnknownDuplicateMissingAndMistypedInputsAreNamed) {
  const Signature signature = OneInput(MK_DTYPE_FP32, {1});
  InferRequest request = Request(MK_DTYPE_FP32, {1}, std::string(4, 'x'));
  request.inputs[0].name = "NOPE";
  EXPECT_EQ(ValidateRequest(signature, request).message(),
            "unknown input 'NOPE': this model's inputs are 'IN'");
  request.inputs[0].name = "IN";
  request.inputs.push_back(request.inputs[0]);
  EXPECT_EQ(ValidateRequest(signature, request).message(), "input 'IN': is given twice");
  request.inputs.clear();
  EXPECT_EQ(ValidateRequest(signature, request).message(),
            "input 'IN' is missing: expected 1 inputs, got 0");
  request = Request(MK_DTYPE_INT32, {1}, std::string(4, 'x'));
  EXPECT_EQ(ValidateRequest(signature, request).message(),
            "input 'IN': data-type is INT32, expected FP32");
}

TEST(ValidateRequest, OutputsMustBeKnownAndAskedOnce) {
  const Signature signature = OneInput(MK_DTYPE_UINT8, {1});
  InferRequest request = Request(MK_DTYPE_UINT8, {1}, "x");
  request.outputs = {"NOPE"};
  EXPECT_EQ(ValidateRequest(signature, request).message(),
            "unknown output 'NOPE': this model's outputs are 'OUT'");
  request = Request(MK_DTYPE_UINT8, {1}, "x");
  request.outputs = {"OUT", "OUT"};
  EXPECT_EQ(ValidateRequest(signature, request).message(), "output 'OUT' is asked for twice");
}

TEST(ValidateRequest, OptionalInputsMayBeLeftOutAndOrderIsTheSignatures) {
  Signature signature = {{{"A", MK_DTYPE_UINT8, {1}, true}, {"B", MK_DTYPE_UINT8, {1}, false}}, {}};
  InferRequest request = Request(MK_DTYPE_UINT8, {1}, "x");
  request.inputs[0].name = "B";
  EXPECT_TRUE(ValidateRequest(signature, request).ok());
  request.inputs.push_back(request.inputs[0]);
  request.inputs[1].name = "A";
  ASSERT_TRUE(ValidateRequest(signature, request).ok());
  EXPECT_EQ(request.inputs[0].name, "A");
}

TEST(ValidatePackedBytes, LengthsMustFillTheBufferExactly) {
  const std::string two("\x01\0\0\0a\x02\0\0\0bc", 11);
  EXPECT_TRUE(ValidatePackedBytes("T", two.data(), two.size(), 2).ok());
  EXPECT_FALSE(ValidatePackedBytes("T", two.data(), two.size(), 1).ok());
  EXPECT_FALSE(ValidatePackedBytes("T", two.data(), two.size(), 3).ok());
  for (size_t cut = 0; cut < two.size(); ++cut) {
    EXPECT_FALSE(ValidatePackedBytes("T", two.data(), cut, 2).ok()) << cut;
  }
  const std::string huge("\xff\xff\xff\xff", 4);
  EXPECT_FALSE(ValidatePackedBytes("T", huge.data(), huge.size(), 1).ok());
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
