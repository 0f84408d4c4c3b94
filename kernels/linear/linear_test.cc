#include "kernels/linear/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/linear/linear_shapes.h"
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

// Operands of one shape, made by the generator, and the formula in double.
struct Problem {
  explicit Problem(const LinearShape& shape)
      : m(shape.m),
        n(shape.n),
        k(shape.k),
        x(Generate(std::string(shape.name) + "/x", 1, m * k, -1, 1)),
        weight(Generate(std::string(shape.name) + "/w", 1, n * k, -1, 1)),
        bias(Generate(std::string(shape.name) + "/b", 1, n, -1, 1)),
        residual(Generate(std::string(shape.name) + "/r", 1, m * n, -1, 1)),
        y(static_cast<size_t>(m * n), NAN) {}

  LinearParams Params(Activation activation, bool with_bias, bool with_residual) {
    return {x.data(),
            weight.data(),
            with_bias ? bias.data() : nullptr,
            with_residual ? residual.data() : nullptr,
            y.data(),
            m,
            n,
            k,
            activation};
  }

  std::vector<double> Reference(Activation activation, bool with_bias, bool with_residual) const {
    std::vector<double> out;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = with_bias ? bias[static_cast<size_t>(j)] : 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += static_cast<double>(x[static_cast<size_t>(i * k + p)]) *
                 weight[static_cast<size_t>(j * k + p)];
        }
        sum = Activated(activation, sum);
        if (with_residual) sum += residual[static_cast<size_t>(i * n + j)];
        out.push_back(sum);
      }
    }
    return out;
  }

  // |operands| <= 1, so a sum of k + 2 terms in fp32 is off by at most (k + 2)^2 / 2 half-ulps of
  // 1; activations have a slope below 1.13.
  double Bound() const {
    return 1.2 * 0.5 * static_cast<double>((k + 2) * (k + 2)) * 0x1p-24 + 1e-6;
  }

  const int64_t m, n, k;
  std::vector<float> x, weight, bias, residual, y;
};

class LinearTwin : public testing::IsaTest {};
MK_FOR_EVERY_ISA(LinearTwin);

TEST_P(LinearTwin, EqualsTheFormulaOnRaggedShapesWithEveryEpilogue) {
  TestContext context(2);
  for (const LinearShape& shape : kLinearRaggedShapes) {
    for (const Activation activation :
         {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
      for (const bool with_bias : {false, true}) {
        for (const bool with_residual : {false, true}) {
          Problem problem(shape);
          const Status status =
              LinearCpu(*context, problem.Params(activation, with_bias, with_residual), isa());
          ASSERT_TRUE(status.ok()) << status.message();
          EXPECT_TRUE(IsNear(problem.y, problem.Reference(activation, with_bias, with_residual),
                             problem.Bound(), 0, {problem.m, problem.n}))
              << shape.name << " " << static_cast<int>(activation) << with_bias << with_residual;
        }
      }
    }
  }
}

TEST_P(LinearTwin, AddsTheResidualInPlace) {
  TestContext context(2);
  for (const LinearShape& shape : kLinearRaggedShapes) {
    Problem problem(shape);
    problem.y = problem.residual;
    LinearParams params = problem.Params(Activation::kNone, true, true);
    params.residual = params.y;
    ASSERT_TRUE(LinearCpu(*context, params, isa()).ok());
    EXPECT_TRUE(IsNear(problem.y, problem.Reference(Activation::kNone, true, true), problem.Bound(),
                       0, {problem.m, problem.n}))
        << shape.name;
  }
}

TEST_P(LinearTwin, EqualsTheReferenceModelsNumbers) {
  TestContext context;
  for (const testing::OpCase& op_case : testing::ReadOpCases(testing::kOpGoldens, "linear_gelu")) {
    const auto& x = op_case.Input("x");
    const auto& weight = op_case.Input("weight");
    std::vector<float> y(op_case.output.values.size());
    const LinearParams params = {x.values.data(),
                                 weight.values.data(),
                                 op_case.Input("bias").values.data(),
                                 nullptr,
                                 y.data(),
                                 x.shape[0],
                                 weight.shape[0],
                                 x.shape[1],
                                 Activation::kGelu};
    ASSERT_TRUE(LinearCpu(*context, params, isa()).ok());
    EXPECT_TRUE(testing::IsNearRelL2(y, op_case.output.values, 1e-6, op_case.output.shape))
        << op_case.name;
  }
}

TEST_P(LinearTwin, CarriesNanToItsRowOnly) {
  TestContext context;
  Problem problem({"nan", 3, 4, 5});
  problem.x[5] = NAN;  // row 1
  ASSERT_TRUE(LinearCpu(*context, problem.Params(Activation::kGelu, true, false), isa()).ok());
  for (size_t i = 0; i < problem.y.size(); ++i) EXPECT_EQ(std::isnan(problem.y[i]), i / 4 == 1);
}

TEST(Linear, RefusesEachBrokenPrecondition) {
  TestContext context;
  Problem problem({"refused", 2, 3, 4});
  const LinearParams good = problem.Params(Activation::kNone, true, false);
  const auto message = [&](auto change) {
    LinearParams params = good;
    change(params);
    const Status status = Linear(*context, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  EXPECT_EQ(message([](LinearParams& p) { p.x = nullptr; }), "Linear: x is null");
  EXPECT_EQ(message([](LinearParams& p) { p.weight = nullptr; }), "Linear: weight is null");
  EXPECT_EQ(message([](LinearParams& p) { p.y = nullptr; }), "Linear: y is null");
  EXPECT_EQ(message([](LinearParams& p) { p.m = 0; }), "Linear: m 0 not in 1..2147483647");
  EXPECT_EQ(message([](LinearParams& p) { p.n = -1; }), "Linear: n -1 not in 1..2147483647");
  EXPECT_EQ(message([](LinearParams& p) { p.k = INT64_MAX; }),
            "Linear: k 9223372036854775807 not in 1..2147483647");
  EXPECT_EQ(message([](LinearParams& p) { p.m = p.n = INT32_MAX; }),
            "Linear: y of 2147483647 x 2147483647 elements > 1099511627776");
  EXPECT_EQ(message([](LinearParams& p) { p.activation = static_cast<Activation>(7); }),
            "Linear: activation 7 is unknown");
  EXPECT_EQ(message([](LinearParams& p) { p.y = const_cast<float*>(p.x); }), "Linear: y is x");
  EXPECT_EQ(message([](LinearParams& p) {
              p.activation = Activation::kGelu;
              p.residual = p.y;
            }),
            "Linear: residual is y, with activation gelu");
}

TEST(Linear, IsUnimplementedElsewhere) {
  TestContext context(1, "cuda");
  Problem problem({"elsewhere", 2, 3, 4});
  const Status status = Linear(*context, problem.Params(Activation::kNone, false, false));
  EXPECT_EQ(status.code(), MK_UNIMPLEMENTED);
  EXPECT_EQ(status.message(), "Linear: no code for device cuda");
}

TEST(Linear, CostCountsOperandsOnce) {
  Problem problem({"cost", 2, 3, 4});
  const OpCost cost = LinearCost(problem.Params(Activation::kNone, true, true));
  EXPECT_EQ(cost.flops, 2 * 2 * 3 * 4);
  EXPECT_EQ(cost.bytes, 4 * (2 * 4 + 3 * 4 + 2 * 3 + 3 + 2 * 3));
}

}  // namespace
}  // namespace mk
