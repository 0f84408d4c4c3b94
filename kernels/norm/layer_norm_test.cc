#include "kernels/norm/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/norm/layer_norm_shapes.h"
#include "kernels/simd/testing/isa_test.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/golden.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

using testing::Generate;
using testing::IsNear;
using testing::TestContext;
using testing::Transposed;

constexpr float kEpsilon = 1e-5f;

struct Problem {
  explicit Problem(const LayerNormShape& shape, float low = -1, float high = 1)
      : rows(shape.rows),
        channels(shape.channels),
        x(Generate(std::string(shape.name) + "/x", 1, rows * channels, low, high)),
        weight(Generate("weight", 1, channels, 0.5f, 1.5f)),
        bias(Generate("bias", 1, channels, -1, 1)),
        y(x.size(), NAN) {}

  LayerNormParams Params(Activation activation = Activation::kNone) {
    return {x.data(), weight.data(), bias.data(), y.data(), rows, channels, kEpsilon, activation};
  }

  std::vector<double> Reference() const {
    std::vector<double> out;
    for (int64_t i = 0; i < rows; ++i) {
      const float* row = x.data() + i * channels;
      double mean = 0;
      double variance = 0;
      for (int64_t c = 0; c < channels; ++c) mean += row[c];
      mean /= static_cast<double>(channels);
      for (int64_t c = 0; c < channels; ++c) variance += (row[c] - mean) * (row[c] - mean);
      variance /= static_cast<double>(channels);
      for (int64_t c = 0; c < channels; ++c) {
        out.push_back((row[c] - mean) / std::sqrt(variance + kEpsilon) * weight[c] + bias[c]);
      }
    }
    return out;
  }

  const int64_t rows, channels;
  std::vector<float> x, weight, bias, y;
};

class LayerNormTwin : public testing::IsaTest {};
MK_FOR_EVERY_ISA(LayerNormTwin);

TEST_P(LayerNormTwin, EqualsTheFormulaOnRaggedShapes) {
  TestContext context(2);
  for (const LayerNormShape& shape : kLayerNormRaggedShapes) {
    Problem problem(shape);
    ASSERT_TRUE(LayerNormCpu(*context, problem.Params(), isa()).ok());
    // Values of size 1 and a spread near 0.5: a few roundings of the mean, over the deviation.
    EXPECT_TRUE(
        IsNear(problem.y, problem.Reference(), 2e-6, 2e-6, {problem.rows, problem.channels}))
        << shape.name;
  }
}

TEST_P(LayerNormTwin, RunsInPlace) {
  TestContext context(2);
  for (const LayerNormShape& shape : kLayerNormRaggedShapes) {
    Problem problem(shape);
    const std::vector<double> want = problem.Reference();
    LayerNormParams params = problem.Params();
    params.y = problem.x.data();
    ASSERT_TRUE(LayerNormCpu(*context, params, isa()).ok());
    EXPECT_TRUE(IsNear(problem.x, want, 2e-6, 2e-6)) << shape.name;
  }
}

TEST_P(LayerNormTwin, KeepsPrecisionFarFromZero) {
  // A one-pass variance would lose everything here: mean 1000, deviation 0.6. The mean is off by at
  // most an ulp of 1000, 6e-5, of which the deviation makes 1e-4.
  TestContext context;
  Problem problem({"far", 4, 96}, 999.0f, 1001.0f);
  ASSERT_TRUE(LayerNormCpu(*context, problem.Params(), isa()).ok());
  EXPECT_TRUE(IsNear(problem.y, problem.Reference(), 2e-4, 0));
}

TEST_P(LayerNormTwin, OfAConstantRowIsTheBias) {
  TestContext context;
  Problem problem({"constant", 2, 11}, 3.0f, 3.0f);
  ASSERT_TRUE(LayerNormCpu(*context, problem.Params(), isa()).ok());
  for (size_t i = 0; i < problem.y.size(); ++i) {
    EXPECT_NEAR(problem.y[i], problem.bias[i % 11], 2e-4);  // 3.0 / 11 * 11 may be an ulp off
  }
}

TEST_P(LayerNormTwin, AppliesTheActivation) {
  TestContext context;
  Problem problem({"activation", 7, 13});
  std::vector<double> want = problem.Reference();
  for (double& v : want) v = 0.5 * v * std::erfc(-v * std::sqrt(0.5));
  ASSERT_TRUE(LayerNormCpu(*context, problem.Params(Activation::kGelu), isa()).ok());
  EXPECT_TRUE(IsNear(problem.y, want, 3e-6, 3e-6));
  want = problem.Reference();
  for (double& v : want) v = v < 0 ? 0 : v;
  ASSERT_TRUE(LayerNormCpu(*context, problem.Params(Activation::kRelu), isa()).ok());
  EXPECT_TRUE(IsNear(problem.y, want, 3e-6, 3e-6));
  want = problem.Reference();
  for (double& v : want) v = v / (1 + std::exp(-v));
  ASSERT_TRUE(LayerNormCpu(*context, problem.Params(Activation::kSilu), isa()).ok());
  EXPECT_TRUE(IsNear(problem.y, want, 3e-6, 3e-6));
}

TEST_P(LayerNormTwin, EqualsTheReferenceModelsNumbers) {
  TestContext context;
  for (const testing::OpCase& op_case :
       testing::ReadOpCases(testing::kOpGoldens, "layer_norm_2d")) {
    const auto& x = op_case.Input("x");
    const int64_t channels = x.shape[0];
    const int64_t rows = x.shape[1] * x.shape[2];
    const std::vector<float> tokens = Transposed(x.values, channels, rows);
    std::vector<float> y(tokens.size());
    const LayerNormParams params = {tokens.data(),
                                    op_case.Input("weight").values.data(),
                                    op_case.Input("bias").values.data(),
                                    y.data(),
                                    rows,
                                    channels,
                                    static_cast<float>(op_case.attributes.at("eps")),
                                    Activation::kNone};
    ASSERT_TRUE(LayerNormCpu(*context, params, isa()).ok());
    EXPECT_TRUE(testing::IsNearRelL2(Transposed(y, rows, channels), op_case.output.values, 1e-6,
                                     op_case.output.shape))
        << op_case.name;
  }
}

TEST_P(LayerNormTwin, CarriesNanToItsRowOnly) {
  TestContext context;
  Problem problem({"nan", 3, 5});
  problem.x[7] = NAN;  // row 1
  ASSERT_TRUE(LayerNormCpu(*context, problem.Params(), isa()).ok());
  for (size_t i = 0; i < problem.y.size(); ++i) EXPECT_EQ(std::isnan(problem.y[i]), i / 5 == 1);
}

TEST(LayerNorm, RefusesEachBrokenPrecondition) {
  TestContext context;
  Problem problem({"refused", 2, 3});
  const auto message = [&](auto change) {
    LayerNormParams params = problem.Params();
    change(params);
    const Status status = LayerNorm(*context, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = LayerNormParams;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "LayerNorm: x is null");
  EXPECT_EQ(message([](P& p) { p.weight = nullptr; }), "LayerNorm: weight is null");
  EXPECT_EQ(message([](P& p) { p.bias = nullptr; }), "LayerNorm: bias is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "LayerNorm: y is null");
  EXPECT_EQ(message([](P& p) { p.rows = 0; }), "LayerNorm: rows 0 not in 1..1099511627776");
  EXPECT_EQ(message([](P& p) { p.channels = 1 << 25; }),
            "LayerNorm: channels 33554432 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.rows = kMaxElements; }),
            "LayerNorm: x of 1099511627776 x 3 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.epsilon = NAN; }),
            "LayerNorm: epsilon nan is not finite and >= 0");
  EXPECT_EQ(message([](P& p) { p.activation = static_cast<Activation>(9); }),
            "LayerNorm: activation 9 is unknown");
}

TEST(LayerNorm, IsUnimplementedElsewhere) {
  TestContext context(1, "emulated");
  Problem problem({"elsewhere", 2, 3});
  const Status status = LayerNorm(*context, problem.Params());
  EXPECT_EQ(status.code(), MK_UNIMPLEMENTED);
  EXPECT_EQ(status.message(), "LayerNorm: no code for device emulated");
}

TEST(LayerNorm, CostCountsOperandsOnce) {
  Problem problem({"cost", 2, 3});
  EXPECT_EQ(LayerNormCost(problem.Params()).bytes, 4 * (6 + 6 + 3 + 3));
}

}  // namespace
}  // namespace mk
