#include "core/run/validate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

TEST(ValidateRequest, MessagesStayShortWhateverTheRequestHolds) {
  const Signature signature = OneInput(MK_DTYPE_UINT8, {-1, 16});
  InferRequest request = Request(MK_DTYPE_UINT8, std::vector<int64_t>(1'000'000, 1), "x");
  const absl::Status rank = ValidateRequest(signature, request);
  EXPECT_NE(rank.message().find("[1,1,1,1,1,1,1,1,...]: rank 1000000, expected 2"),
            std::string_view::npos)
      << rank;
  request = Request(MK_DTYPE_UINT8, {1, 16}, std::string(16, 'x'));
  request.inputs[0].name = std::string(1 << 20, '\n');
  EXPECT_LT(ValidateRequest(signature, request).message().size(), 500u);
  request.inputs[0].name = "IN";
  request.outputs = {std::string(1 << 20, 'x')};
  EXPECT_LT(ValidateRequest(signature, request).message().size(), 500u);
}

// Field case A05, what of it the protocol leaves to this judgement: inputs in any order, of the
// right type, all there.
TEST(ValidateRequest, A05ReversedInputsAreOrderedAndWrongOnesNamed) {
  const Signature sum2 = {
      {{"INPUT0", MK_DTYPE_INT32, {4}, false}, {"INPUT1", MK_DTYPE_INT32, {4}, false}},
      {{"SUM", MK_DTYPE_INT32, {4}, false}}};
  const std::string first(16, '\1'), second(16, '\2');
  InferRequest request;
  request.inputs = {{"INPUT1", MK_DTYPE_INT32, {4}, second.data(), 16},
                    {"INPUT0", MK_DTYPE_INT32, {4}, first.data(), 16}};
  const InferRequest good = request;
  ASSERT_TRUE(ValidateRequest(sum2, request).ok());
  EXPECT_EQ(request.inputs[0].name, "INPUT0");
  EXPECT_EQ(request.inputs[0].data, first.data());
  EXPECT_EQ(request.inputs[1].data, second.data());
  request = good;
  request.inputs[0].dtype = MK_DTYPE_INVALID;
  EXPECT_EQ(ValidateRequest(sum2, request).message(),
            "input 'INPUT1': data-type is INVALID, expected INT32");
  request = good;
  request.inputs[1].size_bytes = 12;  // three numbers for shape [4]
  EXPECT_EQ(ValidateRequest(sum2, request).message(), "input 'INPUT0': expected 16 bytes, got 12");
  request = good;
  request.inputs.pop_back();
  EXPECT_EQ(ValidateRequest(sum2, request).message(),
            "input 'INPUT0' is missing: expected 2 inputs, got 1");
  request.inputs.clear();
  EXPECT_FALSE(ValidateRequest(sum2, request).ok());
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

}  // namespace
}  // namespace mk
