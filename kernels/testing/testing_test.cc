// The helpers themselves: a comparison that cannot fail would prove nothing.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/golden.h"
#include "kernels/testing/test_context.h"

namespace mk::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

TEST(Compare, AcceptsWithinAndRefusesBeyondTheBound) {
  EXPECT_TRUE(IsNearRelL2(Floats{1.0f, 2.0f}, Doubles{1.0, 2.0}, 0));
  EXPECT_FALSE(IsNearRelL2(Floats{1.0f, 2.1f}, Doubles{1.0, 2.0}, 1e-3));
  EXPECT_TRUE(IsNear({1.0f, 2.001f}, {1.0, 2.0}, 0, 1e-3));
  EXPECT_FALSE(IsNear({1.0f, 2.1f}, {1.0, 2.0}, 0, 1e-3));
  EXPECT_FALSE(IsNearRelL2(Floats{1e-20f}, Doubles{0.0}, 1e-5));
}

TEST(Compare, ComparesNanAndInfinityByPosition) {
  EXPECT_TRUE(IsNearRelL2(Floats{kNan, kInfinity, 1}, Doubles{kNan, kInfinity, 1}, 0));
  EXPECT_FALSE(IsNearRelL2(Floats{kNan, 1}, Doubles{1, 1}, 1e9));
  EXPECT_FALSE(IsNearRelL2(Floats{1, 1}, Doubles{kNan, 1}, 1e9));
  EXPECT_FALSE(IsNear({kInfinity}, {-kInfinity}, 1e9, 1e9));
  EXPECT_FALSE(IsNear({1}, {1, 1}, 1, 1));
}

TEST(Compare, NamesTheWorstIndexInTheShape) {
  const auto result =
      IsNearRelL2(Floats{1, 1, 1, 1, 1.5, 9}, Doubles{1, 1, 1, 1, 1, 1}, 1e-6, {2, 3});
  EXPECT_NE(std::string(result.message()).find("[1, 2]"), std::string::npos) << result.message();
}

TEST(Generator, MakesTheDocumentedBits) {
  EXPECT_EQ(Fnv1a64("input"), 0x1EBBAE8F5810B65Bu);
  const Floats input = Generate("input", 101, 4, -1.0f, 1.0f);
  EXPECT_EQ(input, (Floats{0x1.9a1158p-2f, -0x1.856bbp-1f, 0x1.ba661cp-1f, 0x1.742bb8p-1f}));
  const Floats weight = GenerateByRule("patch_embed.0.weight", {4, 3, 3, 3}, 101);
  EXPECT_EQ(weight[0], -0.17802839f);
  EXPECT_EQ(weight[1], -0.153632134f);
}

TEST(Golden, OpCasesCarryInputsAndOutputs) {
  for (const OpCase& op_case : ReadOpCases(kOpGoldens, "conv3x3")) {
    EXPECT_EQ(op_case.Input("x").values.size(), 3u * 7 * 9);
    EXPECT_EQ(op_case.output.values.size(), 5u * 4 * 5);
    EXPECT_EQ(op_case.attributes.at("stride"), 2);
  }
}

TEST(TestContext, ScratchNestsAndCountsItsPeak) {
  TestContext context;
  {
    const ScratchScope scope(*context);
    ASSERT_TRUE(context->Scratch<float>(100).ok());
    EXPECT_GE(context.run().scratch_used_bytes(), 400u);
  }
  EXPECT_EQ(context.run().scratch_used_bytes(), 0u);
  EXPECT_GE(context.run().scratch_peak_bytes(), 400u);
  context.run().set_scratch_limit_bytes(64);
  EXPECT_EQ(context->Scratch<float>(100).status().code(), MK_RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace mk::testing
