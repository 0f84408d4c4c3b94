#include "kernels/image/resize_normalize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/image/resize_normalize_shapes.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

using testing::IsNear;
using testing::TestContext;

constexpr float kMean[3] = {0.485f, 0.456f, 0.406f};
constexpr float kStd[3] = {0.229f, 0.224f, 0.225f};

// Row i of the filter matrix that makes `source` samples into `target`.
std::vector<double> FilterRow(int64_t source, int64_t target, int64_t i) {
  const double scale = static_cast<double>(source) / static_cast<double>(target);
  const double support = std::max(1.0, scale);
  std::vector<double> weights;
  double sum = 0;
  for (int64_t j = 0; j < source; ++j) {
    const double distance = std::fabs(j + 0.5 - (i + 0.5) * scale);
    weights.push_back(std::max(0.0, 1.0 - distance / support));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

struct Problem {
  explicit Problem(const ResizeNormalizeShape& shape)
      : s(shape),
        y(static_cast<size_t>((s.crop_height + 2 * s.pad) * (s.crop_width + 2 * s.pad) *
                              s.out_channels),
          NAN) {
    for (const float v : testing::Generate(s.name, 1, s.height * s.width * s.channels, 0, 256)) {
      image.push_back(static_cast<uint8_t>(v));
    }
  }

  ResizeNormalizeParams Params() {
    ResizeNormalizeParams p = {
        image.data(),     y.data(),        s.height,       s.width,     s.channels,
        s.resized_height, s.resized_width, s.crop_top,     s.crop_left, s.crop_height,
        s.crop_width,     s.pad,           s.out_channels, {},          {}};
    std::copy(kMean, kMean + 3, p.mean);
    std::copy(kStd, kStd + 3, p.std);
    return p;
  }

  // A pixel after step 1.
  double Pixel(int64_t row, int64_t column, int64_t c) const {
    const uint8_t* pixel = image.data() + (row * s.width + column) * s.channels;
    if (s.channels == s.out_channels) return pixel[c];
    if (s.out_channels == 3) return pixel[0];
    return 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
  }

  double Resized(int64_t row, int64_t column, int64_t c) const {
    const std::vector<double> across = FilterRow(s.width, s.resized_width, column);
    const std::vector<double> down = FilterRow(s.height, s.resized_height, row);
    double sum = 0;
    for (int64_t j = 0; j < s.height; ++j) {
      if (down[j] == 0) continue;
      for (int64_t i = 0; i < s.width; ++i) {
        if (across[i] != 0) sum += down[j] * across[i] * Pixel(j, i, c);
      }
    }
    return sum;
  }

  std::vector<double> Reference() const {
    std::vector<double> out;
    for (int64_t row = -s.pad; row < s.crop_height + s.pad; ++row) {
      for (int64_t column = -s.pad; column < s.crop_width + s.pad; ++column) {
        const bool inside = row >= 0 && row < s.crop_height && column >= 0 && column < s.crop_width;
        for (int64_t c = 0; c < s.out_channels; ++c) {
          const double v = inside ? Resized(row + s.crop_top, column + s.crop_left, c) : 0.0;
          out.push_back((v / 255 - kMean[c]) / kStd[c]);
        }
      }
    }
    return out;
  }

  const ResizeNormalizeShape s;
  std::vector<uint8_t> image;
  std::vector<float> y;
};

TEST(ResizeNormalize, EqualsTheFormulaOnRaggedShapes) {
  for (const int threads : {1, 3}) {
    TestContext context(threads);
    for (const ResizeNormalizeShape& shape : kResizeNormalizeRaggedShapes) {
      Problem problem(shape);
      const Status status = ResizeNormalize(*context, problem.Params());
      ASSERT_TRUE(status.ok()) << status.message();
      // Sums of a few dozen weighted pixels in fp32, of size 1 after the division, over std 0.22.
      EXPECT_TRUE(IsNear(problem.y, problem.Reference(), 4e-6, 1e-6,
                         {shape.crop_height + 2 * shape.pad, shape.crop_width + 2 * shape.pad,
                          shape.out_channels}))
          << shape.name;
      EXPECT_EQ(context.run().scratch_used_bytes(), 0u);
    }
  }
}

TEST(ResizeNormalize, DoesNotDependOnTheThreads) {
  for (const ResizeNormalizeShape& shape : kResizeNormalizeRaggedShapes) {
    Problem one(shape);
    Problem three(shape);
    TestContext alone(1);
    TestContext together(3);
    ASSERT_TRUE(ResizeNormalize(*alone, one.Params()).ok());
    ASSERT_TRUE(ResizeNormalize(*together, three.Params()).ok());
    EXPECT_EQ(one.y, three.y) << shape.name;
  }
}

TEST(ResizeNormalize, WithoutAResizeIsExact) {
  TestContext context;
  Problem problem({"exact", 6, 5, 1, 6, 5, 1, 1, 3, 2, 0, 1});
  ASSERT_TRUE(ResizeNormalize(*context, problem.Params()).ok());
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t column = 0; column < 2; ++column) {
      const auto pixel = static_cast<float>(problem.image[(row + 1) * 5 + column + 1]);
      EXPECT_EQ(problem.y[row * 2 + column], (pixel / 255.0f - kMean[0]) / kStd[0]);
    }
  }
}

TEST(ResizeNormalize, ScratchDoesNotGrowWithTheHeight) {
  uint64_t peaks[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t height = i == 0 ? 64 : 4096;
    TestContext context(2);
    Problem problem({"tall", height, 32, 3, height, 32, 3, 0, 28, 28, 0, 1});
    ASSERT_TRUE(ResizeNormalize(*context, problem.Params()).ok());
    peaks[i] = context.run().scratch_peak_bytes();
  }
  EXPECT_EQ(peaks[0], peaks[1]);
}

TEST(ResizeNormalize, RefusesEachBrokenPrecondition) {
  TestContext context;
  Problem problem({"refused", 8, 8, 3, 6, 6, 1, 1, 4, 4, 1, 3});
  const auto message = [&](auto change) {
    ResizeNormalizeParams params = problem.Params();
    change(params);
    const Status status = ResizeNormalize(*context, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = ResizeNormalizeParams;
  EXPECT_EQ(message([](P& p) { p.image = nullptr; }), "ResizeNormalize: image is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "ResizeNormalize: y is null");
  EXPECT_EQ(message([](P& p) { p.height = 0; }), "ResizeNormalize: height 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.width = 0; }), "ResizeNormalize: width 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.resized_height = 0; }),
            "ResizeNormalize: resized_height 0 not in 1..1099511627776");
  EXPECT_EQ(message([](P& p) { p.resized_width = 0; }),
            "ResizeNormalize: resized_width 0 not in 1..1099511627776");
  EXPECT_EQ(message([](P& p) { p.crop_height = 0; }),
            "ResizeNormalize: crop_height 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.crop_width = 0; }),
            "ResizeNormalize: crop_width 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.pad = -1; }), "ResizeNormalize: pad -1 not in 0..1048576");
  EXPECT_EQ(message([](P& p) { p.crop_top = 3; }), "ResizeNormalize: y window 3+4 not in 0..6");
  EXPECT_EQ(message([](P& p) { p.crop_left = -1; }), "ResizeNormalize: x window -1+4 not in 0..6");
  EXPECT_EQ(message([](P& p) { p.channels = 4; }),
            "ResizeNormalize: channels 4 is neither 1 nor 3");
  EXPECT_EQ(message([](P& p) { p.out_channels = 2; }),
            "ResizeNormalize: out_channels 2 is neither 1 nor 3");
  EXPECT_EQ(message([](P& p) { p.std[1] = 0; }),
            "ResizeNormalize: mean 0.456000, std 0.000000 of channel 1 must be finite, std not 0");
}

TEST(ResizeNormalize, ReportsExhaustedScratch) {
  TestContext context;
  Problem problem({"scratch", 8, 8, 3, 6, 6, 1, 1, 4, 4, 1, 3});
  context.run().set_scratch_limit_bytes(64);
  EXPECT_EQ(ResizeNormalize(*context, problem.Params()).code(), MK_RESOURCE_EXHAUSTED);
}

TEST(ResizeNormalize, IsUnimplementedElsewhere) {
  TestContext context(1, "cuda");
  Problem problem({"elsewhere", 8, 8, 3, 6, 6, 1, 1, 4, 4, 1, 3});
  const Status status = ResizeNormalize(*context, problem.Params());
  EXPECT_EQ(status.code(), MK_UNIMPLEMENTED);
  EXPECT_EQ(status.message(), "ResizeNormalize: no code for device cuda");
}

TEST(ResizeNormalize, CostCountsTheImageOnce) {
  Problem problem({"cost", 8, 8, 3, 6, 6, 1, 1, 4, 4, 1, 3});
  EXPECT_EQ(ResizeNormalizeCost(problem.Params()).bytes, 8 * 8 * 3 + 4 * 6 * 6 * 3);
}

}  // namespace
}  // namespace mk
