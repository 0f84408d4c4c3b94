#include "kernels/conv/depthwise3x3.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/conv/depthwise3x3_shapes.h"
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

double Activated(Activation activation, double v) {
  switch (activation) {
    case Activation::kNone:
      return v;
    case Activation::kRelu:
      return v < 0 ? 0 : v;
    case Activation::kGelu:
      return 0.5 * v * std::erfc(-v * std::sqrt(0.5));
    case Activation::kSilu:
      return v / (1 + std::exp(-v));
  }
  return NAN;
}

struct Problem {
  explicit Problem(const Depthwise3x3Shape& s)
      : shape(s),
        x(Generate("x", 1, s.height * s.width * s.channels, -1, 1)),
        weight(Generate("weight", 1, 9 * s.channels, -1, 1)),
        y(x.size(), NAN) {}

  Depthwise3x3Params Params(Activation activation = Activation::kNone) {
    return {x.data(),    weight.data(),  y.data(),  shape.height,
            shape.width, shape.channels, activation};
  }

  std::vector<double> Reference(Activation activation) const {
    std::vector<double> out;
    for (int64_t i = 0; i < shape.height; ++i) {
      for (int64_t j = 0; j < shape.width; ++j) {
        for (int64_t c = 0; c < shape.channels; ++c) {
          double sum = 0;
          for (int64_t tap = 0; tap < 9; ++tap) {
            const int64_t row = i + tap / 3 - 1;
            const int64_t column = j + tap % 3 - 1;
            if (row < 0 || row >= shape.height || column < 0 || column >= shape.width) continue;
            sum += static_cast<double>(x[(row * shape.width + column) * shape.channels + c]) *
                   weight[tap * shape.channels + c];
          }
          out.push_back(Activated(activation, sum));
        }
      }
    }
    return out;
  }

  const Depthwise3x3Shape shape;
  std::vector<float> x, weight, y;
};

class Depthwise3x3Twin : public testing::IsaTest {};
MK_FOR_EVERY_ISA(Depthwise3x3Twin);

TEST_P(Depthwise3x3Twin, EqualsTheFormulaOnRaggedShapes) {
  TestContext context(2);
  for (const Depthwise3x3Shape& shape : kDepthwise3x3RaggedShapes) {
    for (const Activation activation :
         {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
      Problem problem(shape);
      const Status status = Depthwise3x3Cpu(*context, problem.Params(activation), isa());
      ASSERT_TRUE(status.ok()) << status.message();
      // Nine terms of size <= 1 in fp32: at most 9^2 / 2 half-ulps of 1, 2.5e-6.
      EXPECT_TRUE(IsNear(problem.y, problem.Reference(activation), 3e-6, 1e-6,
                         {shape.height, shape.width, shape.channels}))
          << shape.name << " " << static_cast<int>(activation);
      EXPECT_EQ(context.run().scratch_used_bytes(), 0u);
    }
  }
}

TEST_P(Depthwise3x3Twin, EqualsTheReferenceModelsNumbers) {
  TestContext context;
  for (const testing::OpCase& op_case : testing::ReadOpCases(testing::kOpGoldens, "depthwise3x3")) {
    const auto& x = op_case.Input("x");
    const auto& stored = op_case.Input("weight");
    const int64_t channels = x.shape[0];
    const int64_t positions = x.shape[1] * x.shape[2];
    const std::vector<float> tokens = Transposed(x.values, channels, positions);
    std::vector<float> weight(stored.values.size());
    RelayDepthwise3x3Weight(stored.values.data(), channels, weight.data());
    std::vector<float> y(tokens.size());
    const Depthwise3x3Params params = {tokens.data(), weight.data(), y.data(),         x.shape[1],
                                       x.shape[2],    channels,      Activation::kNone};
    ASSERT_TRUE(Depthwise3x3Cpu(*context, params, isa()).ok());
    EXPECT_TRUE(testing::IsNearRelL2(Transposed(y, positions, channels), op_case.output.values,
                                     1e-6, op_case.output.shape))
        << op_case.name;
  }
}

TEST_P(Depthwise3x3Twin, SiluEqualsTheReferenceModelsNumbers) {
  // A kernel that is 1 in its middle passes the map through, so the activation is seen alone.
  TestContext context;
  for (const testing::OpCase& op_case : testing::ReadOpCases(testing::kOpGoldens, "silu")) {
    const auto& x = op_case.Input("x").values;
    const auto count = static_cast<int64_t>(x.size());
    const std::vector<float> weight = {0, 0, 0, 0, 1, 0, 0, 0, 0};
    std::vector<float> y(x.size());
    const Depthwise3x3Params params = {x.data(), weight.data(),    y.data(), 1, count,
                                       1,        Activation::kSilu};
    ASSERT_TRUE(Depthwise3x3Cpu(*context, params, isa()).ok());
    EXPECT_TRUE(testing::IsNearRelL2(y, op_case.output.values, 1e-6)) << op_case.name;
  }
}

TEST_P(Depthwise3x3Twin, CarriesNanToItsNeighboursInItsChannelOnly) {
  TestContext context;
  Problem problem({"nan", 6, 9, 5});
  problem.x[(2 * 9 + 4) * 5 + 3] = NAN;  // row 2, column 4, channel 3
  ASSERT_TRUE(Depthwise3x3Cpu(*context, problem.Params(Activation::kSilu), isa()).ok());
  for (int64_t i = 0; i < static_cast<int64_t>(problem.y.size()); ++i) {
    const int64_t row = i / 45, column = i / 5 % 9;
    const bool near = std::abs(row - 2) <= 1 && std::abs(column - 4) <= 1 && i % 5 == 3;
    EXPECT_EQ(std::isnan(problem.y[static_cast<size_t>(i)]), near) << row << " " << column;
  }
}

TEST(Depthwise3x3, RefusesEachBrokenPrecondition) {
  TestContext context;
  Problem problem({"refused", 4, 4, 2});
  const auto message = [&](auto change) {
    Depthwise3x3Params params = problem.Params();
    change(params);
    const Status status = Depthwise3x3(*context, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = Depthwise3x3Params;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "Depthwise3x3: x is null");
  EXPECT_EQ(message([](P& p) { p.weight = nullptr; }), "Depthwise3x3: weight is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "Depthwise3x3: y is null");
  EXPECT_EQ(message([](P& p) { p.height = 0; }), "Depthwise3x3: height 0 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.width = 0; }), "Depthwise3x3: width 0 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.channels = -1; }), "Depthwise3x3: channels -1 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.height = p.width = 1 << 24; }),
            "Depthwise3x3: x of 281474976710656 x 2 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.activation = static_cast<Activation>(5); }),
            "Depthwise3x3: activation 5 is unknown");
  EXPECT_EQ(message([](P& p) { p.y = const_cast<float*>(p.x); }), "Depthwise3x3: y is x");
}

TEST(Depthwise3x3, ReportsExhaustedScratch) {
  TestContext context;
  Problem problem({"scratch", 4, 4, 64});
  context.run().set_scratch_limit_bytes(64);
  EXPECT_EQ(Depthwise3x3(*context, problem.Params()).code(), MK_RESOURCE_EXHAUSTED);
}

TEST(Depthwise3x3, IsUnimplementedElsewhere) {
  TestContext context(1, "cuda");
  Problem problem({"elsewhere", 4, 4, 2});
  const Status status = Depthwise3x3(*context, problem.Params());
  EXPECT_EQ(status.code(), MK_UNIMPLEMENTED);
  EXPECT_EQ(status.message(), "Depthwise3x3: no code for device cuda");
}

TEST(Depthwise3x3, CostCountsOperandsOnce) {
  Problem problem({"cost", 4, 5, 2});
  const OpCost cost = Depthwise3x3Cost(problem.Params());
  EXPECT_EQ(cost.flops, 18 * 40);
  EXPECT_EQ(cost.bytes, 4 * (40 + 40 + 18));
}

}  // namespace
}  // namespace mk
