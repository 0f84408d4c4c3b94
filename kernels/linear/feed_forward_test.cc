#include "kernels/linear/feed_forward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/linear/feed_forward_shapes.h"
#include "kernels/simd/testing/isa_test.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

using testing::Generate;
using testing::IsNearRelL2;
using testing::TestContext;

constexpr float kEpsilon = 1e-5f;

struct Problem {
  explicit Problem(const FeedForwardShape& shape)
      : s(shape),
        x(Generate("x", 1, s.rows * s.channels, -1, 1)),
        norm_weight(Generate("nw", 1, s.channels, 0.5f, 1.5f)),
        norm_bias(Generate("nb", 1, s.channels, -1, 1)),
        weight1(Generate("w1", 1, s.hidden * s.channels, -1, 1)),
        bias1(Generate("b1", 1, s.hidden, -1, 1)),
        weight2(Generate("w2", 1, s.channels * s.hidden, -1, 1)),
        bias2(Generate("b2", 1, s.channels, -1, 1)) {}

  FeedForwardParams Params(bool with_biases = true) {
    return {norm_weight.data(), norm_bias.data(),
            weight1.data(),     with_biases ? bias1.data() : nullptr,
            weight2.data(),     with_biases ? bias2.data() : nullptr,
            x.data(),           s.rows,
            s.channels,         s.hidden,
            kEpsilon,           Activation::kGelu};
  }

  // The formula in double.
  std::vector<double> Reference(bool with_biases = true) const {
    std::vector<double> out;
    for (int64_t i = 0; i < s.rows; ++i) AddRow(x.data() + i * s.channels, with_biases, out);
    return out;
  }

  void AddRow(const float* row, bool with_biases, std::vector<double>& out) const {
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < s.channels; ++c) mean += row[c] / static_cast<double>(s.channels);
    for (int64_t c = 0; c < s.channels; ++c) {
      variance += (row[c] - mean) * (row[c] - mean) / static_cast<double>(s.channels);
    }
    std::vector<double> normed, hidden;
    for (int64_t c = 0; c < s.channels; ++c) {
      normed.push_back((row[c] - mean) / std::sqrt(variance + kEpsilon) * norm_weight[c] +
                       norm_bias[c]);
    }
    for (int64_t h = 0; h < s.hidden; ++h) {
      double sum = with_biases ? bias1[h] : 0;
      for (int64_t c = 0; c < s.channels; ++c) sum += normed[c] * weight1[h * s.channels + c];
      hidden.push_back(0.5 * sum * std::erfc(-sum * std::sqrt(0.5)));
    }
    for (int64_t c = 0; c < s.channels; ++c) {
      double sum = row[c] + (with_biases ? bias2[c] : 0);
      for (int64_t h = 0; h < s.hidden; ++h) sum += hidden[h] * weight2[c * s.hidden + h];
      out.push_back(sum);
    }
  }

  const FeedForwardShape s;
  std::vector<float> x, norm_weight, norm_bias, weight1, bias1, weight2, bias2;
};

class FeedForwardTwin : public testing::IsaTest {};
MK_FOR_EVERY_ISA(FeedForwardTwin);

TEST_P(FeedForwardTwin, EqualsTheFormulaOnRaggedShapes) {
  for (const int threads : {1, 3}) {
    TestContext context(threads);
    for (const FeedForwardShape& shape : kFeedForwardRaggedShapes) {
      for (const bool with_biases : {true, false}) {
        Problem problem(shape);
        const std::vector<double> want = problem.Reference(with_biases);
        const Status status = FeedForwardCpu(*context, problem.Params(with_biases), isa());
        ASSERT_TRUE(status.ok()) << status.message();
        // Two sums in fp32 of at most 4096 terms of either sign; ten times what is seen.
        EXPECT_TRUE(IsNearRelL2(problem.x, want, 2e-6, {shape.rows, shape.channels})) << shape.name;
        EXPECT_EQ(context.run().scratch_used_bytes(), 0u);
      }
    }
  }
}

TEST_P(FeedForwardTwin, DoesNotDependOnTheThreads) {
  for (const FeedForwardShape& shape : kFeedForwardRaggedShapes) {
    Problem one(shape);
    Problem three(shape);
    TestContext alone(1);
    TestContext together(3);
    ASSERT_TRUE(FeedForwardCpu(*alone, one.Params(), isa()).ok());
    ASSERT_TRUE(FeedForwardCpu(*together, three.Params(), isa()).ok());
    EXPECT_EQ(one.x, three.x) << shape.name;
  }
}

TEST_P(FeedForwardTwin, CarriesNanToItsRowOnly) {
  TestContext context;
  Problem problem({"nan", 3, 5, 9});
  problem.x[7] = NAN;  // row 1
  ASSERT_TRUE(FeedForwardCpu(*context, problem.Params(), isa()).ok());
  for (size_t i = 0; i < problem.x.size(); ++i) EXPECT_EQ(std::isnan(problem.x[i]), i / 5 == 1);
}

TEST(FeedForward, TakesTheScratchThatItSays) {
  for (const int threads : {1, 2, 16}) {
    for (const FeedForwardShape& shape : kFeedForwardRaggedShapes) {
      TestContext context(threads);
      Problem problem(shape);
      ASSERT_TRUE(FeedForward(*context, problem.Params()).ok());
      const auto said = static_cast<uint64_t>(
          FeedForwardScratchBytes(shape.rows, shape.channels, shape.hidden, threads));
      EXPECT_LE(context.run().scratch_peak_bytes(), said + 128) << shape.name;
    }
  }
  // Bounded: a map of a megapixel takes what one of a few tiles takes.
  EXPECT_LE(FeedForwardScratchBytes(1 << 20, 96, 384, 2), 4 << 20);
}

TEST(FeedForward, ReportsExhaustedScratch) {
  TestContext context;
  Problem problem({"scratch", 9, 5, 7});
  context.run().set_scratch_limit_bytes(64);
  EXPECT_EQ(FeedForward(*context, problem.Params()).code(), MK_RESOURCE_EXHAUSTED);
}

TEST(FeedForward, RefusesEachBrokenPrecondition) {
  TestContext context;
  Problem problem({"refused", 2, 3, 4});
  const auto message = [&](auto change) {
    FeedForwardParams params = problem.Params();
    change(params);
    const Status status = FeedForward(*context, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = FeedForwardParams;
  EXPECT_EQ(message([](P& p) { p.norm_weight = nullptr; }), "FeedForward: norm_weight is null");
  EXPECT_EQ(message([](P& p) { p.norm_bias = nullptr; }), "FeedForward: norm_bias is null");
  EXPECT_EQ(message([](P& p) { p.weight1 = nullptr; }), "FeedForward: weight1 is null");
  EXPECT_EQ(message([](P& p) { p.weight2 = nullptr; }), "FeedForward: weight2 is null");
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "FeedForward: x is null");
  EXPECT_EQ(message([](P& p) { p.rows = 0; }), "FeedForward: rows 0 not in 1..2147483647");
  EXPECT_EQ(message([](P& p) { p.channels = -1; }), "FeedForward: channels -1 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.hidden = 1 << 21; }),
            "FeedForward: hidden 2097152 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.rows = INT32_MAX, p.channels = 1 << 20; }),
            "FeedForward: x of 2147483647 x 1048576 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.epsilon = -1; }),
            "FeedForward: epsilon -1.000000 is not finite and >= 0");
  EXPECT_EQ(message([](P& p) { p.activation = static_cast<Activation>(7); }),
            "FeedForward: activation 7 is unknown");
}

TEST(FeedForward, IsUnimplementedElsewhere) {
  TestContext context(1, "cuda");
  Problem problem({"elsewhere", 2, 3, 4});
  const Status status = FeedForward(*context, problem.Params());
  EXPECT_EQ(status.code(), MK_UNIMPLEMENTED);
  EXPECT_EQ(status.message(), "FeedForward: no code for device cuda");
}

TEST(FeedForward, CostCountsOperandsOnce) {
  Problem problem({"cost", 2, 3, 4});
  const OpCost cost = FeedForwardCost(problem.Params());
  EXPECT_EQ(cost.flops, 2 * (2 * 2 * 3 * 4));
  EXPECT_EQ(cost.bytes, 4 * (2 * 6 + 2 * 12 + 6 + 4 + 3));
}

}  // namespace
}  // namespace mk
