#include "kernels/pointwise/multiply.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/pointwise/multiply_shapes.h"
#include "kernels/simd/testing/isa_test.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

using testing::Generate;
using testing::TestContext;

class MultiplyTwin : public testing::IsaTest {};
MK_FOR_EVERY_ISA(MultiplyTwin);

TEST_P(MultiplyTwin, IsExactAlsoInPlace) {
  TestContext context(2);
  for (const MultiplyShape& shape : kMultiplyRaggedShapes) {
    const std::vector<float> a = Generate("a", 1, shape.count, -1, 1);
    const std::vector<float> b = Generate("b", 1, shape.count, -1, 1);
    std::vector<float> y(a.size(), NAN);
    std::vector<float> in_place = a;
    ASSERT_TRUE(MultiplyCpu(*context, {a.data(), b.data(), y.data(), shape.count}, isa()).ok());
    ASSERT_TRUE(
        MultiplyCpu(*context, {in_place.data(), b.data(), in_place.data(), shape.count}, isa())
            .ok());
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], a[i] * b[i]) << shape.name << " " << i;
    EXPECT_EQ(y, in_place);
  }
}

TEST_P(MultiplyTwin, CarriesNanToItsElementOnly) {
  TestContext context;
  std::vector<float> a(37, 2.0f);
  a[20] = NAN;
  const std::vector<float> b(37, 3.0f);
  ASSERT_TRUE(MultiplyCpu(*context, {a.data(), b.data(), a.data(), 37}, isa()).ok());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(std::isnan(a[i]), i == 20);
}

TEST(Multiply, RefusesEachBrokenPrecondition) {
  TestContext context;
  float x = 1;
  EXPECT_EQ(Multiply(*context, {nullptr, &x, &x, 1}).message(), "Multiply: a is null");
  EXPECT_EQ(Multiply(*context, {&x, nullptr, &x, 1}).message(), "Multiply: b is null");
  EXPECT_EQ(Multiply(*context, {&x, &x, nullptr, 1}).message(), "Multiply: y is null");
  EXPECT_EQ(Multiply(*context, {&x, &x, &x, 0}).message(),
            "Multiply: count 0 not in 1..1099511627776");
}

TEST(Multiply, IsUnimplementedElsewhere) {
  TestContext context(1, "cuda");
  float x = 1;
  EXPECT_EQ(Multiply(*context, {&x, &x, &x, 1}).code(), MK_UNIMPLEMENTED);
}

TEST(Multiply, CostCountsOperandsOnce) {
  EXPECT_EQ(MultiplyCost({nullptr, nullptr, nullptr, 5}).bytes, 60);
  EXPECT_EQ(MultiplyCost({nullptr, nullptr, nullptr, 5}).flops, 5);
}

}  // namespace
}  // namespace mk
