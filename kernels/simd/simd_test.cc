// The vector vocabulary and its math on every instruction set of this CPU: lane by lane against the
// scalar, and against the C library in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/simd/testing/isa_test.h"
#include "kernels/simd/testing/map.h"

namespace mk {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Mapped(Isa isa, MapOp op, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  MK_SIMD_PICK(isa, Map)(op, x.data(), y.data(), static_cast<mk_i64>(x.size()));
  return y;
}

float MappedOne(Isa isa, MapOp op, float x) { return Mapped(isa, op, {x})[0]; }

class Vectors : public testing::IsaTest {};
MK_FOR_EVERY_ISA(Vectors);

// Every `stride`-th fp32 value between -limit and limit.
std::vector<float> Floats(float limit, uint32_t stride) {
  std::vector<float> values;
  uint32_t last;
  std::memcpy(&last, &limit, sizeof(last));
  for (uint32_t bits = 0; bits <= last; bits += stride) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    values.push_back(value);
    values.push_back(-value);
  }
  return values;
}

// The distance of `got` from `want` in units of the fp32 spacing at `want`, or 0 where it is within
// `absolute`.
double UlpDistance(float got, double want, double absolute) {
  if (std::fabs(got - want) <= absolute) return 0;
  const auto nearest = static_cast<float>(want);
  if (std::isinf(nearest)) return got == nearest ? 0 : 1e30;
  const double spacing = std::nextafter(std::fabs(nearest), kInfinity) - std::fabs(nearest);
  return std::fabs(got - want) / spacing;
}

template <typename Function>
void ExpectUlps(Isa isa, MapOp op, const std::vector<float>& x, double bound, double absolute,
                Function want) {
  const std::vector<float> y = Mapped(isa, op, x);
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double ulps = UlpDistance(y[i], want(static_cast<double>(x[i])), absolute);
    if (!(ulps <= worst)) worst = ulps, at = i;
  }
  EXPECT_LE(worst, bound) << IsaName(isa) << " at " << x[at] << ": " << y[at];
}

TEST_P(Vectors, ExpIsWithinTwoUlps) {
  ExpectUlps(isa(), MapOp::kExp, Floats(88.3f, 769), 2.0, 0x1p-126,
             [](double x) { return std::exp(x); });
  EXPECT_EQ(MappedOne(isa(), MapOp::kExp, 0.0f), 1.0f);
  EXPECT_EQ(MappedOne(isa(), MapOp::kExp, -0.0f), 1.0f);
  EXPECT_EQ(MappedOne(isa(), MapOp::kExp, -kInfinity), 0.0f);
  EXPECT_EQ(MappedOne(isa(), MapOp::kExp, -1e30f), 0.0f);
  EXPECT_EQ(MappedOne(isa(), MapOp::kExp, -88.1f), 0.0f);
  EXPECT_EQ(MappedOne(isa(), MapOp::kExp, 88.5f), kInfinity);
  EXPECT_EQ(MappedOne(isa(), MapOp::kExp, kInfinity), kInfinity);
}

TEST_P(Vectors, SoftplusIsWithinFourUlps) {
  ExpectUlps(isa(), MapOp::kSoftplus, Floats(200.0f, 769), 4.0, 0x1p-126, [](double x) {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  });
  for (const float x : {20.5f, 100.0f, 1e10f, 3e38f, kInfinity}) {
    EXPECT_EQ(MappedOne(isa(), MapOp::kSoftplus, x), x) << IsaName(isa());
  }
  EXPECT_EQ(MappedOne(isa(), MapOp::kSoftplus, -kInfinity), 0.0f);
}

TEST_P(Vectors, GeluErrorIsProportionalToItsArgument) {
  const std::vector<float> x = Floats(60.0f, 769);
  const std::vector<float> y = Mapped(isa(), MapOp::kGelu, x);
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = 0.5 * x[i] * std::erfc(-static_cast<double>(x[i]) * std::sqrt(0.5));
    const double error = std::fabs(y[i] - want) / std::max(std::fabs(x[i]), 1e-35f);
    if (!(error <= worst)) worst = error, at = i;
  }
  EXPECT_LE(worst, 2e-7) << IsaName(isa()) << " at " << x[at];
  EXPECT_EQ(MappedOne(isa(), MapOp::kGelu, 0.0f), 0.0f);
  EXPECT_EQ(MappedOne(isa(), MapOp::kGelu, kInfinity), kInfinity);
  EXPECT_EQ(MappedOne(isa(), MapOp::kGelu, -1e30f), 0.0f);
  // The one with erf, not the one with tanh: they differ by 1.5e-4 here.
  EXPECT_NEAR(MappedOne(isa(), MapOp::kGelu, -1.0f), -0.1586553f, 1e-6f);
  EXPECT_NEAR(MappedOne(isa(), MapOp::kGelu, -3.0f), -0.0040497f, 1e-6f);
}

TEST_P(Vectors, SiluIsWithinFourUlps) {
  ExpectUlps(isa(), MapOp::kSilu, Floats(200.0f, 769), 4.0, 1e-36,
             [](double x) { return x / (1.0 + std::exp(-x)); });
  EXPECT_EQ(MappedOne(isa(), MapOp::kSilu, -1e30f), 0.0f);
  EXPECT_EQ(MappedOne(isa(), MapOp::kSilu, kInfinity), kInfinity);
}

TEST_P(Vectors, TheVocabularyIsWhatItSays) {
  const std::vector<float> x = {1.5f,       -0.25f, 3.0f,  -7.0f, 0.0f, 2.0f,
                                -1.0f,      0.5f,   9.0f,  -4.f,  1.0f, kInfinity,
                                -kInfinity, 0.75f,  -2.0f, 6.0f,  -8.0f};
  const auto expect = [&](MapOp op, auto want) {
    const std::vector<float> y = Mapped(isa(), op, x);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(y[i], want(x[i])) << IsaName(isa()) << " op " << static_cast<int>(op) << " " << i;
    }
  };
  expect(MapOp::kCopy, [](float v) { return v; });
  expect(MapOp::kAbs, [](float v) { return std::fabs(v); });
  expect(MapOp::kNegAbs, [](float v) { return -std::fabs(v); });
  expect(MapOp::kMaxZero, [](float v) { return v > 0 ? v : 0; });
  expect(MapOp::kRelu, [](float v) { return v > 0 ? v : 0; });
  expect(MapOp::kMinOne, [](float v) { return v < 1 ? v : 1; });
  expect(MapOp::kSquarePlusOne, [](float v) { return v * v + 1; });
  expect(MapOp::kOneMinusSquare, [](float v) { return 1 - v * v; });
  expect(MapOp::kSignSelect, [](float v) { return v < 0 ? 1.0f : 2.0f; });
}

TEST_P(Vectors, SumCountsEveryLaneOnce) {
  const mk_i64 lanes = MK_SIMD_PICK(isa(), Lanes)();
  for (mk_i64 lane = 0; lane < lanes; ++lane) {
    std::vector<float> x(static_cast<size_t>(lanes), 0.0f);
    x[static_cast<size_t>(lane)] = 3.0f;
    EXPECT_EQ(MK_SIMD_PICK(isa(), SumLanes)(x.data()), 3.0f) << IsaName(isa()) << " " << lane;
  }
}

TEST_P(Vectors, NanStaysInItsLane) {
  for (const MapOp op : {MapOp::kExp, MapOp::kSoftplus, MapOp::kGelu, MapOp::kSilu, MapOp::kRelu,
                         MapOp::kMaxZero, MapOp::kMinOne}) {
    for (size_t at = 0; at < 37; ++at) {
      std::vector<float> x(37, 0.5f);
      // Payloads in every part of the mantissa: none may turn into an exponent.
      const uint32_t bits = 0x7fc00000u | (0x1ffu >> (at % 10)) | (at % 2 == 0 ? 0x80000000u : 0u);
      std::memcpy(&x[at], &bits, sizeof(bits));
      const std::vector<float> y = Mapped(isa(), op, x);
      for (size_t i = 0; i < y.size(); ++i) {
        EXPECT_EQ(std::isnan(y[i]), i == at) << IsaName(isa()) << " op " << static_cast<int>(op);
      }
    }
  }
  EXPECT_TRUE(std::isnan(MappedOne(isa(), MapOp::kExp, kNan)));
}

TEST_P(Vectors, TailsTouchNothingBeyondTheirEnd) {
  for (size_t count = 0; count <= 40; ++count) {
    // On the heap at its exact size, so that a sanitizer sees a read too far.
    const std::vector<float> x(count, 2.0f);
    std::vector<float> y(count + 1, -1.0f);
    MK_SIMD_PICK(isa(), Map)(MapOp::kCopy, x.data(), y.data(), static_cast<mk_i64>(count));
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(y[i], 2.0f) << IsaName(isa()) << " " << count;
    ASSERT_EQ(y[count], -1.0f) << IsaName(isa()) << " " << count;
  }
}

TEST(Isa, TheBestIsOneThatTheCpuHas) {
  EXPECT_TRUE(HasIsa(Isa::kBase));
  EXPECT_TRUE(HasIsa(BestIsa()));
  EXPECT_STRNE(IsaName(BestIsa()), "unknown");
  std::printf("kernels run as %s\n", IsaName(BestIsa()));
}

}  // namespace
}  // namespace mk
