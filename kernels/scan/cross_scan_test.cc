#include "kernels/scan/cross_scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/scan/cross_scan_shapes.h"
#include "kernels/simd/testing/isa_test.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/golden.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

using testing::Generate;
using testing::IsNearRelL2;
using testing::TestContext;
using testing::Transposed;

// Operands in the op's layouts, and the recurrence in double over explicit token lists.
struct Problem {
  explicit Problem(const CrossScanShape& shape)
      : s(shape),
        tokens(s.height * s.width),
        fields(s.rank + 2 * s.state),
        x(Generate("x", 1, tokens * s.channels, -1, 1)),
        projected(Generate("projected", 1, tokens * 4 * fields, -1, 1)),
        dt_weight(Generate("dt_weight", 1, 4 * s.rank * s.channels, -1, 1)),
        dt_bias(Generate("dt_bias", 1, 4 * s.channels, -4, 1)),
        a(Generate("a", 1, 4 * s.state * s.channels, -2.7f, -0.3f)),
        d(Generate("d", 1, s.channels, 2, 6)),
        y(x.size(), NAN) {}

  CrossScanParams Params() {
    return {x.data(), projected.data(), dt_weight.data(), dt_bias.data(), a.data(), d.data(),
            y.data(), s.height,         s.width,          s.channels,     s.rank,   s.state};
  }

  // The tokens along direction k.
  std::vector<int64_t> Order(int64_t k) const {
    std::vector<int64_t> order;
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t u = k < 2 ? t : tokens - 1 - t;
      order.push_back(k % 2 == 0 ? u : u % s.height * s.width + u / s.height);
    }
    return order;
  }

  std::vector<double> Reference() const {
    std::vector<double> out(x.size());
    for (int64_t c = 0; c < s.channels; ++c) {
      for (int64_t t = 0; t < tokens; ++t) {
        out[t * s.channels + c] = static_cast<double>(d[c]) * x[t * s.channels + c];
      }
      for (int64_t k = 0; k < 4; ++k) AddDirection(k, c, out);
    }
    return out;
  }

  void AddDirection(int64_t k, int64_t c, std::vector<double>& out) const {
    std::vector<double> h(static_cast<size_t>(s.state));
    for (const int64_t t : Order(k)) {
      const float* f = projected.data() + (t * 4 + k) * fields;
      double dt = dt_bias[k * s.channels + c];
      for (int64_t r = 0; r < s.rank; ++r) {
        dt += static_cast<double>(f[r]) * dt_weight[(k * s.rank + r) * s.channels + c];
      }
      const double step = dt > 20 ? dt : std::log1p(std::exp(dt));
      for (int64_t n = 0; n < s.state; ++n) {
        h[n] = std::exp(step * a[(k * s.state + n) * s.channels + c]) * h[n] +
               step * f[s.rank + n] * x[t * s.channels + c];
        out[t * s.channels + c] += f[s.rank + s.state + n] * h[n];
      }
    }
  }

  const CrossScanShape s;
  const int64_t tokens, fields;
  std::vector<float> x, projected, dt_weight, dt_bias, a, d, y;
};

class CrossScanTwin : public testing::IsaTest {};
MK_FOR_EVERY_ISA(CrossScanTwin);

TEST_P(CrossScanTwin, EqualsTheRecurrenceOnRaggedShapes) {
  for (const int threads : {1, 3}) {
    TestContext context(threads);
    for (const CrossScanShape& shape : kCrossScanRaggedShapes) {
      Problem problem(shape);
      const Status status = CrossScanCpu(*context, problem.Params(), isa());
      ASSERT_TRUE(status.ok()) << status.message();
      // A contracting recurrence forgets its rounding errors; ten times what is seen.
      EXPECT_TRUE(IsNearRelL2(problem.y, problem.Reference(), 2e-6,
                              {shape.height, shape.width, shape.channels}))
          << shape.name;
      EXPECT_EQ(context.run().scratch_used_bytes(), 0u);
    }
  }
}

TEST_P(CrossScanTwin, DoesNotDependOnTheThreads) {
  for (const CrossScanShape& shape : kCrossScanRaggedShapes) {
    Problem one(shape);
    Problem three(shape);
    TestContext alone(1);
    TestContext together(3);
    ASSERT_TRUE(CrossScanCpu(*alone, one.Params(), isa()).ok());
    ASSERT_TRUE(CrossScanCpu(*together, three.Params(), isa()).ok());
    EXPECT_EQ(one.y, three.y) << shape.name;
  }
}

TEST_P(CrossScanTwin, EqualsTheReferenceModelsNumbers) {
  TestContext context;
  for (const testing::OpCase& op_case : testing::ReadOpCases(testing::kOpGoldens, "ss2d_core")) {
    const auto& x = op_case.Input("x");
    const auto& x_proj = op_case.Input("x_proj_weight");
    const int64_t channels = x.shape[0];
    const int64_t tokens = x.shape[1] * x.shape[2];
    const int64_t rank = op_case.Input("dt_projs_weight").shape[2];
    const int64_t state = op_case.Input("A_logs").shape[1];
    const int64_t outputs = 4 * (rank + 2 * state);
    ASSERT_EQ(static_cast<int64_t>(x_proj.values.size()), outputs * channels);

    const std::vector<float> map = Transposed(x.values, channels, tokens);
    std::vector<float> projected;
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t o = 0; o < outputs; ++o) {
        double sum = 0;
        for (int64_t c = 0; c < channels; ++c) {
          sum += static_cast<double>(map[t * channels + c]) * x_proj.values[o * channels + c];
        }
        projected.push_back(static_cast<float>(sum));
      }
    }
    std::vector<float> dt_weight, a, d(static_cast<size_t>(channels));
    for (int64_t k = 0; k < 4; ++k) {
      for (int64_t r = 0; r < rank; ++r) {
        for (int64_t c = 0; c < channels; ++c) {
          dt_weight.push_back(
              op_case.Input("dt_projs_weight").values[(k * channels + c) * rank + r]);
        }
      }
      for (int64_t n = 0; n < state; ++n) {
        for (int64_t c = 0; c < channels; ++c) {
          a.push_back(-std::exp(op_case.Input("A_logs").values[(k * channels + c) * state + n]));
        }
      }
      for (int64_t c = 0; c < channels; ++c) {
        d[c] += op_case.Input("Ds").values[k * channels + c];
      }
    }
    std::vector<float> y(map.size());
    const CrossScanParams params = {map.data(),
                                    projected.data(),
                                    dt_weight.data(),
                                    op_case.Input("dt_projs_bias").values.data(),
                                    a.data(),
                                    d.data(),
                                    y.data(),
                                    x.shape[1],
                                    x.shape[2],
                                    channels,
                                    rank,
                                    state};
    const Status status = CrossScanCpu(*context, params, isa());
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(IsNearRelL2(Transposed(y, tokens, channels), op_case.output.values, 2e-6,
                            op_case.output.shape))
        << op_case.name;
  }
}

// One sequence as a map of one row or one column, its recurrence on direction `k`, and B = 0 (no
// drive) on the others. The step's inputs pass through an identity of rank `channels`.
std::vector<float> ScanSequence(TestContext& context, Isa isa, const testing::OpCase& op_case,
                                int64_t k, int64_t height, int64_t width) {
  const int64_t channels = op_case.Input("u").shape[0];
  const int64_t tokens = op_case.Input("u").shape[1];
  const int64_t state = op_case.Input("A_logs").shape[1];
  const int64_t rank = channels;
  const int64_t fields = rank + 2 * state;
  const std::vector<float> x = Transposed(op_case.Input("u").values, channels, tokens);
  std::vector<float> projected(static_cast<size_t>(tokens * 4 * fields));
  std::vector<float> dt_weight(static_cast<size_t>(4 * rank * channels));
  std::vector<float> dt_bias(static_cast<size_t>(4 * channels));
  std::vector<float> a(static_cast<size_t>(4 * state * channels));
  std::vector<float> y(x.size());
  for (int64_t t = 0; t < tokens; ++t) {
    float* f = projected.data() + (t * 4 + k) * fields;
    for (int64_t c = 0; c < channels; ++c) f[c] = op_case.Input("dt").values[c * tokens + t];
    for (int64_t n = 0; n < state; ++n) {
      f[rank + n] = op_case.Input("B").values[n * tokens + t];
      f[rank + state + n] = op_case.Input("C").values[n * tokens + t];
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    dt_weight[(k * rank + c) * channels + c] = 1.0f;
    dt_bias[k * channels + c] = op_case.Input("dt_projs_bias").values[c];
    for (int64_t n = 0; n < state; ++n) {
      a[(k * state + n) * channels + c] = -std::exp(op_case.Input("A_logs").values[c * state + n]);
    }
  }
  const CrossScanParams params = {x.data(),
                                  projected.data(),
                                  dt_weight.data(),
                                  dt_bias.data(),
                                  a.data(),
                                  op_case.Input("Ds").values.data(),
                                  y.data(),
                                  height,
                                  width,
                                  channels,
                                  rank,
                                  state};
  const Status status = CrossScanCpu(*context, params, isa);
  EXPECT_TRUE(status.ok()) << status.message();
  return Transposed(y, tokens, channels);
}

TEST_P(CrossScanTwin, EverySingleDirectionEqualsTheReferenceScan) {
  TestContext context;
  for (const testing::OpCase& op_case :
       testing::ReadOpCases(testing::kOpGoldens, "selective_scan")) {
    const int64_t tokens = op_case.Input("u").shape[1];
    const int64_t backwards = op_case.attributes.at("reverse") != 0 ? 2 : 0;
    for (const int64_t k : {backwards, backwards + 1}) {
      for (const bool as_row : {true, false}) {
        EXPECT_TRUE(IsNearRelL2(
            ScanSequence(context, isa(), op_case, k, as_row ? 1 : tokens, as_row ? tokens : 1),
            op_case.output.values, 2e-6, op_case.output.shape))
            << op_case.name << " direction " << k << (as_row ? " as a row" : " as a column");
      }
    }
  }
}

TEST_P(CrossScanTwin, KeepsTheStateOfALongSequence) {
  // 4096 steps of decay e^-0.001 and drive 0.001: a state that is held or decays in half precision
  // ends far from (1 - e^-4.096) 0.001 / (1 - e^-0.001). Of one row, the backwards direction ends
  // at token 0; the others are silenced by C = 0.
  constexpr int64_t kTokens = 4096;
  TestContext context;
  Problem problem({"long", 1, kTokens, 1, 1, 1});
  for (float& v : problem.x) v = 1.0f;
  for (float& v : problem.dt_weight) v = 0.0f;
  for (float& v : problem.dt_bias) v = -6.9072555f;  // softplus: 0.001
  for (float& v : problem.a) v = -1.0f;
  problem.d[0] = 0.0f;
  for (size_t i = 0; i < problem.projected.size(); i += 3) {
    problem.projected[i + 1] = 1.0f;                          // B
    problem.projected[i + 2] = i / 3 % 4 == 2 ? 1.0f : 0.0f;  // C
  }
  ASSERT_TRUE(CrossScanCpu(*context, problem.Params(), isa()).ok());
  EXPECT_NEAR(problem.y[0], 0.983853f, 1e-4f);
}

TEST_P(CrossScanTwin, CarriesNanToItsChannelOnly) {
  TestContext context;
  Problem problem({"nan", 3, 4, 5, 2, 2});
  problem.x[2 * 5 + 3] = NAN;  // token 2, channel 3
  ASSERT_TRUE(CrossScanCpu(*context, problem.Params(), isa()).ok());
  for (size_t i = 0; i < problem.y.size(); ++i) EXPECT_EQ(std::isnan(problem.y[i]), i % 5 == 3);
}

TEST(CrossScan, RefusesEachBrokenPrecondition) {
  TestContext context;
  Problem problem({"refused", 2, 3, 4, 2, 1});
  const auto message = [&](auto change) {
    CrossScanParams params = problem.Params();
    change(params);
    const Status status = CrossScan(*context, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = CrossScanParams;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "CrossScan: x is null");
  EXPECT_EQ(message([](P& p) { p.projected = nullptr; }), "CrossScan: projected is null");
  EXPECT_EQ(message([](P& p) { p.dt_weight = nullptr; }), "CrossScan: dt_weight is null");
  EXPECT_EQ(message([](P& p) { p.dt_bias = nullptr; }), "CrossScan: dt_bias is null");
  EXPECT_EQ(message([](P& p) { p.a = nullptr; }), "CrossScan: a is null");
  EXPECT_EQ(message([](P& p) { p.d = nullptr; }), "CrossScan: d is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "CrossScan: y is null");
  EXPECT_EQ(message([](P& p) { p.height = 0; }), "CrossScan: height 0 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.width = -1; }), "CrossScan: width -1 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.channels = 0; }), "CrossScan: channels 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.rank = 0; }), "CrossScan: rank 0 not in 1..65536");
  EXPECT_EQ(message([](P& p) { p.state = 257; }), "CrossScan: state 257 not in 1..256");
  EXPECT_EQ(message([](P& p) { p.height = p.width = 1 << 24; }),
            "CrossScan: x of 281474976710656 x 4 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.height = p.width = 1 << 19, p.rank = 1 << 16; }),
            "CrossScan: projected of 274877906944 x 262152 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.y = const_cast<float*>(p.x); }), "CrossScan: y is x");
}

TEST(CrossScan, ReportsExhaustedScratch) {
  TestContext context;
  Problem problem({"scratch", 2, 3, 40, 2, 1});
  context.run().set_scratch_limit_bytes(64);
  EXPECT_EQ(CrossScan(*context, problem.Params()).code(), MK_RESOURCE_EXHAUSTED);
}

TEST(CrossScan, IsUnimplementedElsewhere) {
  TestContext context(1, "cuda");
  Problem problem({"elsewhere", 2, 3, 4, 2, 1});
  const Status status = CrossScan(*context, problem.Params());
  EXPECT_EQ(status.code(), MK_UNIMPLEMENTED);
  EXPECT_EQ(status.message(), "CrossScan: no code for device cuda");
}

TEST(CrossScan, CostCountsOperandsOnce) {
  Problem problem({"cost", 2, 3, 4, 2, 1});
  const OpCost cost = CrossScanCost(problem.Params());
  EXPECT_EQ(cost.bytes, 4 * (6 * (8 + 16) + 4 * (4 * (2 + 1 + 1) + 1)));
  EXPECT_EQ(cost.flops, 4 * 6 * 4 * (4 + 5 + 9));
}

}  // namespace
}  // namespace mk
