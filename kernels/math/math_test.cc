// The vector math against the C library in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/math/activation.h"
#include "kernels/math/exp.h"

namespace mk {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The distance of `got` from `want` in units of the fp32 spacing at `want`.
double UlpDistance(float got, double want) {
  const auto nearest = static_cast<float>(want);
  if (std::isinf(nearest)) return got == nearest ? 0 : 1e30;
  const double spacing =
      std::max<double>(std::nextafter(std::fabs(nearest), kInfinity) - std::fabs(nearest),
                       std::numeric_limits<float>::denorm_min());
  return std::fabs(got - want) / spacing;
}

// Calls visit(x) for every `stride`-th fp32 value between -limit and limit.
template <typename Visit>
void ForFloats(float limit, uint32_t stride, Visit visit) {
  for (uint32_t bits = 0; bits <= FloatBits(limit); bits += stride) {
    visit(FloatFromBits(bits));
    visit(-FloatFromBits(bits));
  }
}

// The worst value of error(x) and where.
struct Worst {
  double error = 0;
  float at = 0;
  void See(double e, float x) {
    if (e > error || std::isnan(e)) error = e, at = x;
  }
};

TEST(Exp, IsWithinOneUlpOfDouble) {
  Worst worst;
  ForFloats(110.0f, 769,
            [&](float x) { worst.See(UlpDistance(Exp(x), std::exp(static_cast<double>(x))), x); });
  EXPECT_LE(worst.error, 1.0) << "at " << worst.at;
}

TEST(Exp, KeepsItsEdges) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(-1e30f), 0.0f);
  EXPECT_EQ(Exp(89.0f), kInfinity);
  EXPECT_TRUE(std::isfinite(Exp(88.72f)));
  EXPECT_GT(Exp(-103.0f), 0.0f);  // denormal
  EXPECT_TRUE(std::isnan(Exp(kNan)));
}

TEST(Softplus, IsWithinThreeUlpOfDouble) {
  Worst worst;
  ForFloats(200.0f, 769, [&](float x) {
    const double want = x > 0 ? x + std::log1p(std::exp(-static_cast<double>(x)))
                              : std::log1p(std::exp(static_cast<double>(x)));
    worst.See(UlpDistance(Softplus(x), want), x);
  });
  EXPECT_LE(worst.error, 3.0) << "at " << worst.at;
}

TEST(Softplus, IsItsArgumentBeyondTwenty) {
  for (uint32_t bits = FloatBits(20.0f) + 1; bits < FloatBits(1e30f); bits += 1021) {
    ASSERT_EQ(Softplus(FloatFromBits(bits)), FloatFromBits(bits));
  }
  EXPECT_EQ(Softplus(kInfinity), kInfinity);
  EXPECT_EQ(Softplus(-kInfinity), 0.0f);
  EXPECT_TRUE(std::isnan(Softplus(kNan)));
}

TEST(Gelu, ErrorIsProportionalToItsArgument) {
  Worst worst;
  ForFloats(40.0f, 769, [&](float x) {
    const double want = 0.5 * x * std::erfc(-static_cast<double>(x) * std::sqrt(0.5));
    worst.See(std::fabs(Gelu(x) - want) / std::max(std::fabs(x), 1e-35f), x);
  });
  EXPECT_LE(worst.error, 1.6e-7) << "at " << worst.at;
}

TEST(Gelu, KeepsItsEdges) {
  EXPECT_EQ(Gelu(0.0f), 0.0f);
  EXPECT_EQ(Gelu(kInfinity), kInfinity);
  EXPECT_EQ(Gelu(100.0f), 100.0f);
  EXPECT_EQ(Gelu(-100.0f), 0.0f);
  EXPECT_TRUE(std::isnan(Gelu(kNan)));
}

TEST(NormalCdf, StaysWithinItsAbsoluteError) {
  Worst worst;
  ForFloats(20.0f, 769, [&](float x) {
    const double want = 0.5 * std::erfc(-static_cast<double>(x) * std::sqrt(0.5));
    worst.See(std::fabs(NormalCdf(x) - want), x);
  });
  EXPECT_LE(worst.error, 1e-7) << "at " << worst.at;
}

TEST(Silu, IsWithinThreeUlpOfDouble) {
  Worst worst;
  ForFloats(87.0f, 769, [&](float x) {
    const double want = x / (1.0 + std::exp(-static_cast<double>(x)));
    worst.See(UlpDistance(Silu(x), want), x);
  });
  EXPECT_LE(worst.error, 3.0) << "at " << worst.at;
  EXPECT_NEAR(Silu(-95.0f), 0.0f, 1e-36);
  EXPECT_EQ(Silu(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Silu(kNan)));
}

TEST(Relu, IsExact) {
  EXPECT_EQ(Relu(-2.0f), 0.0f);
  EXPECT_EQ(Relu(2.0f), 2.0f);
  EXPECT_TRUE(std::isnan(Relu(kNan)));
}

TEST(Activation, KnowsItsMembers) {
  EXPECT_TRUE(IsActivation(Activation::kNone));
  EXPECT_TRUE(IsActivation(Activation::kSilu));
  EXPECT_FALSE(IsActivation(static_cast<Activation>(4)));
  EXPECT_STREQ(ActivationName(Activation::kGelu), "gelu");
  EXPECT_STREQ(ActivationName(static_cast<Activation>(9)), "unknown");
}

}  // namespace
}  // namespace mk
