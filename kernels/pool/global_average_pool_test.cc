#include "kernels/pool/global_average_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/pool/global_average_pool_shapes.h"
#include "kernels/simd/testing/isa_test.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

using testing::Generate;
using testing::IsNear;
using testing::TestContext;

struct Problem {
  explicit Problem(const GlobalAveragePoolShape& shape)
      : rows(shape.rows),
        channels(shape.channels),
        x(Generate("x", 1, rows * channels, 0, 1)),  // one sign: the sum grows as it may
        y(static_cast<size_t>(channels), NAN) {}

  GlobalAveragePoolParams Params() { return {x.data(), y.data(), rows, channels}; }

  std::vector<double> Reference() const {
    std::vector<double> out(static_cast<size_t>(channels));
    for (size_t i = 0; i < x.size(); ++i) {
      out[i % out.size()] += x[i] / static_cast<double>(rows);
    }
    return out;
  }

  const int64_t rows, channels;
  std::vector<float> x, y;
};

class PoolTwin : public testing::IsaTest {};
MK_FOR_EVERY_ISA(PoolTwin);

TEST_P(PoolTwin, EqualsTheFormulaOnRaggedShapes) {
  TestContext context(2);
  for (const GlobalAveragePoolShape& shape : kGlobalAveragePoolRaggedShapes) {
    Problem problem(shape);
    ASSERT_TRUE(GlobalAveragePoolCpu(*context, problem.Params(), isa()).ok());
    // At most 64 + rows / 64 roundings of half an ulp, nearly all of them of smaller sums.
    const double bound = (64 + static_cast<double>(shape.rows) / 64) * 0x1p-24;
    EXPECT_TRUE(IsNear(problem.y, problem.Reference(), 0, bound)) << shape.name;
  }
}

TEST_P(PoolTwin, CarriesNanToItsChannelOnly) {
  TestContext context;
  Problem problem({"nan", 3, 5});
  problem.x[7] = NAN;  // channel 2
  ASSERT_TRUE(GlobalAveragePoolCpu(*context, problem.Params(), isa()).ok());
  for (size_t c = 0; c < 5; ++c) EXPECT_EQ(std::isnan(problem.y[c]), c == 2);
}

TEST(GlobalAveragePool, RefusesEachBrokenPrecondition) {
  TestContext context;
  Problem problem({"refused", 2, 3});
  const auto message = [&](auto change) {
    GlobalAveragePoolParams params = problem.Params();
    change(params);
    const Status status = GlobalAveragePool(*context, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = GlobalAveragePoolParams;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "GlobalAveragePool: x is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "GlobalAveragePool: y is null");
  EXPECT_EQ(message([](P& p) { p.rows = 0; }), "GlobalAveragePool: rows 0 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.channels = 1 << 21; }),
            "GlobalAveragePool: channels 2097152 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.rows = 1 << 24, p.channels = 1 << 20; }),
            "GlobalAveragePool: x of 16777216 x 1048576 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.y = const_cast<float*>(p.x); }), "GlobalAveragePool: y is x");
}

TEST(GlobalAveragePool, IsUnimplementedElsewhere) {
  TestContext context(1, "cuda");
  Problem problem({"elsewhere", 2, 3});
  const Status status = GlobalAveragePool(*context, problem.Params());
  EXPECT_EQ(status.code(), MK_UNIMPLEMENTED);
  EXPECT_EQ(status.message(), "GlobalAveragePool: no code for device cuda");
}

TEST(GlobalAveragePool, CostCountsOperandsOnce) {
  Problem problem({"cost", 2, 3});
  EXPECT_EQ(GlobalAveragePoolCost(problem.Params()).bytes, 4 * (6 + 3));
}

}  // namespace
}  // namespace mk
