#include "kernels/conv/conv3x3.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/conv/conv3x3_shapes.h"
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

struct Problem {
  explicit Problem(const Conv3x3Shape& s)
      : shape(s),
        out_height((s.height + 2 - 3) / s.stride + 1),
        out_width((s.width + 2 - 3) / s.stride + 1),
        x(Generate("x", 1, s.height * s.width * s.in_channels, -1, 1)),
        weight(Generate("weight", 1, 9 * s.in_channels * s.out_channels, -1, 1)),
        bias(Generate("bias", 1, s.out_channels, -1, 1)),
        y(static_cast<size_t>(out_height * out_width * s.out_channels), NAN) {}

  Conv3x3Params Params(bool with_bias = true) {
    return {x.data(),          weight.data(),      with_bias ? bias.data() : nullptr,
            y.data(),          shape.height,       shape.width,
            shape.in_channels, shape.out_channels, shape.stride};
  }

  std::vector<double> Reference(bool with_bias) const {
    std::vector<double> out;
    for (int64_t i = 0; i < out_height; ++i) {
      for (int64_t j = 0; j < out_width; ++j) {
        for (int64_t o = 0; o < shape.out_channels; ++o) {
          out.push_back((with_bias ? bias[o] : 0.0) + At(i, j, o));
        }
      }
    }
    return out;
  }

  double At(int64_t i, int64_t j, int64_t o) const {
    double sum = 0;
    for (int64_t u = 0; u < 3; ++u) {
      for (int64_t v = 0; v < 3; ++v) {
        const int64_t row = shape.stride * i + u - 1;
        const int64_t column = shape.stride * j + v - 1;
        if (row < 0 || row >= shape.height || column < 0 || column >= shape.width) continue;
        for (int64_t c = 0; c < shape.in_channels; ++c) {
          sum += static_cast<double>(x[(row * shape.width + column) * shape.in_channels + c]) *
                 weight[((u * 3 + v) * shape.in_channels + c) * shape.out_channels + o];
        }
      }
    }
    return sum;
  }

  // 9 ci + 1 terms of size <= 1, as in linear_test.cc.
  double Bound() const {
    const double terms = 9.0 * static_cast<double>(shape.in_channels) + 1;
    return 0.5 * terms * terms * 0x1p-24 + 1e-6;
  }

  const Conv3x3Shape shape;
  const int64_t out_height, out_width;
  std::vector<float> x, weight, bias, y;
};

class Conv3x3Twin : public testing::IsaTest {};
MK_FOR_EVERY_ISA(Conv3x3Twin);

TEST_P(Conv3x3Twin, EqualsTheFormulaOnRaggedShapes) {
  for (const int threads : {1, 3}) {
    TestContext context(threads);
    for (const Conv3x3Shape& shape : kConv3x3RaggedShapes) {
      for (const bool with_bias : {false, true}) {
        Problem problem(shape);
        const Status status = Conv3x3Cpu(*context, problem.Params(with_bias), isa());
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_TRUE(IsNear(problem.y, problem.Reference(with_bias), problem.Bound(), 0,
                           {problem.out_height, problem.out_width, shape.out_channels}))
            << shape.name << " bias " << with_bias;
        EXPECT_EQ(context.run().scratch_used_bytes(), 0u);
      }
    }
  }
}

TEST_P(Conv3x3Twin, EqualsTheReferenceModelsNumbers) {
  TestContext context;
  for (const testing::OpCase& op_case : testing::ReadOpCases(testing::kOpGoldens, "conv3x3")) {
    const auto& x = op_case.Input("x");
    const auto& stored = op_case.Input("weight");
    const int64_t ci = x.shape[0];
    const int64_t co = stored.shape[0];
    const int64_t positions = op_case.output.shape[1] * op_case.output.shape[2];
    const std::vector<float> tokens = Transposed(x.values, ci, x.shape[1] * x.shape[2]);
    std::vector<float> weight(stored.values.size());
    RelayConv3x3Weight(stored.values.data(), co, ci, weight.data());
    std::vector<float> y(op_case.output.values.size());
    const Conv3x3Params params = {tokens.data(),
                                  weight.data(),
                                  op_case.Input("bias").values.data(),
                                  y.data(),
                                  x.shape[1],
                                  x.shape[2],
                                  ci,
                                  co,
                                  static_cast<int64_t>(op_case.attributes.at("stride"))};
    ASSERT_TRUE(Conv3x3Cpu(*context, params, isa()).ok());
    EXPECT_TRUE(testing::IsNearRelL2(Transposed(y, positions, co), op_case.output.values, 1e-6,
                                     op_case.output.shape))
        << op_case.name;
  }
}

TEST(Conv3x3, TakesNoMoreScratchThanItSays) {
  TestContext context(4);
  for (const Conv3x3Shape& shape : kConv3x3RaggedShapes) {
    Problem problem(shape);
    TestContext fresh(4);
    ASSERT_TRUE(Conv3x3(*fresh, problem.Params()).ok());
    const int64_t positions = problem.out_height * problem.out_width;
    // One rounding up to whole slices, and to the arena's alignment (and a sanitizer's gap).
    EXPECT_LE(fresh.run().scratch_peak_bytes(),
              static_cast<uint64_t>((positions + 4) * 36 * shape.in_channels + 128))
        << shape.name;
  }
}

TEST(Conv3x3, ReportsExhaustedScratch) {
  TestContext context;
  Problem problem({"scratch", 8, 8, 4, 4, 1});
  context.run().set_scratch_limit_bytes(64);
  EXPECT_EQ(Conv3x3(*context, problem.Params()).code(), MK_RESOURCE_EXHAUSTED);
}

TEST(Conv3x3, RefusesEachBrokenPrecondition) {
  TestContext context;
  Problem problem({"refused", 4, 4, 2, 3, 1});
  const auto message = [&](auto change) {
    Conv3x3Params params = problem.Params();
    change(params);
    const Status status = Conv3x3(*context, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = Conv3x3Params;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "Conv3x3: x is null");
  EXPECT_EQ(message([](P& p) { p.weight = nullptr; }), "Conv3x3: weight is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "Conv3x3: y is null");
  EXPECT_EQ(message([](P& p) { p.height = 0; }), "Conv3x3: height 0 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.width = -3; }), "Conv3x3: width -3 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.in_channels = 0; }), "Conv3x3: in_channels 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.out_channels = 1 << 21; }),
            "Conv3x3: out_channels 2097152 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.stride = 3; }), "Conv3x3: stride 3 not in 1..2");
  EXPECT_EQ(message([](P& p) { p.height = p.width = 1 << 24; }),
            "Conv3x3: x of 281474976710656 x 2 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.y = const_cast<float*>(p.x); }), "Conv3x3: y is x");
}

TEST(Conv3x3, IsUnimplementedElsewhere) {
  TestContext context(1, "planning");
  Problem problem({"elsewhere", 4, 4, 2, 3, 1});
  const Status status = Conv3x3(*context, problem.Params());
  EXPECT_EQ(status.code(), MK_UNIMPLEMENTED);
  EXPECT_EQ(status.message(), "Conv3x3: no code for device planning");
}

TEST(Conv3x3, CostCountsOperandsOnce) {
  Problem problem({"cost", 4, 6, 2, 3, 2});
  const OpCost cost = Conv3x3Cost(problem.Params());
  EXPECT_EQ(cost.flops, 2 * 9 * (2 * 3) * 2 * 3);
  EXPECT_EQ(cost.bytes, 4 * (4 * 6 * 2 + 9 * 2 * 3 + 2 * 3 * 3 + 3));
}

}  // namespace
}  // namespace mk
