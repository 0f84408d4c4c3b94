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
std::vector<double> FilterRow(int64_t source, int64_t target, int64_t i, mk_u32 filter) {
  const double scale = static_cast<double>(source) / static_cast<double>(target);
  const double stretch = std::max(1.0, scale);
  std::vector<double> weights;
  double sum = 0;
  for (int64_t j = 0; j < source; ++j) {
    const double t = std::fabs(j + 0.5 - (i + 0.5) * scale) / stretch;
    if (filter == MK_RESIZE_TRIANGLE) {
      weights.push_back(std::max(0.0, 1.0 - t));
    } else {
      weights.push_back(t < 1   ? 1.5 * t * t * t - 2.5 * t * t + 1
                        : t < 2 ? -0.5 * t * t * t + 2.5 * t * t - 4 * t + 2
                                : 0.0);
    }
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

struct Problem {
  explicit Problem(const ResizeNormalizeShape& shape, mk_u32 filter_used = MK_RESIZE_TRIANGLE)
      : s(shape),
        filter(filter_used),
        y(static_cast<size_t>((s.crop_height + 2 * s.pad) * (s.crop_width + 2 * s.pad) *
                              s.out_channels),
          NAN) {
    for (const float v : testing::Generate(s.name, 1, s.height * s.width * s.channels, 0, 256)) {
      image.push_back(static_cast<uint8_t>(v));
    }
  }

  ResizeNormalizeParams Params() {
    ResizeNormalizeParams p = {
        image.data(),    y.data(),   s.height,    s.width,       s.channels,   s.resized_height,
        s.resized_width, s.crop_top, s.crop_left, s.crop_height, s.crop_width, s.pad,
        s.out_channels,  {},         {},          filter};
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
    const std::vector<double> across = FilterRow(s.width, s.resized_width, column, filter);
    const std::vector<double> down = FilterRow(s.height, s.resized_height, row, filter);
    double sum = 0;
    for (int64_t j = 0; j < s.height; ++j) {
      if (down[j] == 0) continue;
      double pass = 0;
      for (int64_t i = 0; i < s.width; ++i) {
        if (across[i] != 0) pass += across[i] * Pixel(j, i, c);
      }
      sum += down[j] * Clamped(pass);
    }
    return Clamped(sum);
  }
  double Clamped(double sample) const {
    return filter == MK_RESIZE_BICUBIC ? std::min(255.0, std::max(0.0, sample)) : sample;
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
  const mk_u32 filter;
  std::vector<uint8_t> image;
  std::vector<float> y;
};

TEST(ResizeNormalize, EqualsTheFormulaOnRaggedShapes) {
  for (const auto& [threads, filter] :
       {std::pair(1, MK_RESIZE_TRIANGLE), std::pair(3, MK_RESIZE_TRIANGLE),
        std::pair(1, MK_RESIZE_BICUBIC), std::pair(3, MK_RESIZE_BICUBIC)}) {
    for (const ResizeNormalizeShape& shape : kResizeNormalizeRaggedShapes) {
      TestContext context(threads);
      Problem problem(shape, filter);
      const Status status = ResizeNormalize(*context, problem.Params());
      ASSERT_TRUE(status.ok()) << status.message();
      // Sums of a few dozen weighted pixels in fp32, of size 1 after the division, over std 0.22.
      EXPECT_TRUE(IsNear(problem.y, problem.Reference(), 4e-6, 1e-6,
                         {shape.crop_height + 2 * shape.pad, shape.crop_width + 2 * shape.pad,
                          shape.out_channels}))
          << shape.name << ", filter " << filter;
      EXPECT_EQ(context.run().scratch_used_bytes(), 0u);
      const int64_t filters = ResizeFilterBytes(shape.height, shape.crop_height, filter) +
                              ResizeFilterBytes(shape.width, shape.crop_width, filter);
      const int64_t rows = threads * 4 * shape.out_channels * (shape.width + shape.crop_width);
      // Five blocks of scratch, each rounded up to 64 and, under ASan, with a guard of 64.
      EXPECT_LE(context.run().scratch_peak_bytes(), static_cast<uint64_t>(filters + rows + 5 * 128))
          << shape.name << ", filter " << filter;
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
  for (const mk_u32 filter : {MK_RESIZE_TRIANGLE, MK_RESIZE_BICUBIC}) {
    Problem problem({"exact", 6, 5, 1, 6, 5, 1, 1, 3, 2, 0, 1}, filter);
    ASSERT_TRUE(ResizeNormalize(*context, problem.Params()).ok());
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t column = 0; column < 2; ++column) {
        const auto pixel = static_cast<float>(problem.image[(row + 1) * 5 + column + 1]);
        EXPECT_EQ(problem.y[row * 2 + column], (pixel / 255.0f - kMean[0]) / kStd[0]);
      }
    }
  }
}

// Image.resize(..., Image.BICUBIC) of Pillow 13.0.0, which rounds to 8 bits after each pass.
constexpr uint8_t kPillow5x6[] = {70,  145, 120, 120, 165, 109, 100, 154, 161, 150,
                                  146, 119, 135, 170, 119, 121, 140, 152, 127, 129,
                                  134, 109, 136, 110, 74,  135, 124, 119, 110, 113};
constexpr uint8_t kPillow14x17[] = {
    0,   32,  99,  174, 115, 11,  66,  150, 210, 83,  32,  110, 200, 194, 50,  91,  155, 6,   52,
    133, 211, 149, 41,  120, 152, 124, 91,  108, 180, 183, 159, 123, 108, 104, 41,  78,  146, 230,
    191, 107, 179, 151, 51,  104, 187, 255, 153, 107, 207, 125, 37,  139, 77,  28,  124, 193, 215,
    147, 141, 182, 118, 124, 211, 119, 78,  179, 106, 24,  134, 103, 70,  83,  164, 238, 119, 132,
    240, 124, 102, 209, 118, 82,  193, 123, 42,  66,  141, 206, 99,  129, 210, 112, 121, 211, 125,
    117, 215, 140, 113, 216, 160, 92,  59,  151, 233, 112, 149, 251, 172, 101, 69,  130, 143, 91,
    143, 173, 133, 167, 203, 101, 136, 172, 145, 177, 217, 136, 74,  55,  121, 139, 92,  157, 166,
    62,  146, 237, 164, 105, 65,  187, 191, 111, 25,  57,  167, 97,  105, 219, 178, 98,  26,  109,
    193, 92,  121, 158, 174, 125, 64,  112, 147, 148, 64,  89,  234, 180, 86,  22,  122, 219, 23,
    128, 234, 156, 75,  47,  194, 224, 137, 63,  71,  163, 164, 121, 59,  118, 180, 7,   109, 216,
    152, 81,  55,  198, 237, 167, 109, 54,  20,  132, 196, 131, 78,  48,  41,  58,  96,  158, 146,
    102, 138, 125, 80,  138, 145, 83,  117, 128, 75,  107, 144, 72,  22,  3,   165, 198, 138, 87,
    31,  5,   152, 222, 163, 112, 59,  14,  138, 248};

TEST(ResizeNormalize, BicubicIsPillowsButForItsRounding) {
  std::vector<uint8_t> image;
  for (int i = 0; i < 9; ++i) {
    for (int j = 0; j < 11; ++j)
      image.push_back(static_cast<uint8_t>((37 * i * i + 91 * j + 13 * i * j) % 256));
  }
  const auto check = [&](const uint8_t* want, int64_t height, int64_t width) {
    TestContext context;
    std::vector<float> y(static_cast<size_t>(height * width), NAN);
    const Status status = ResizeNormalize(*context, {image.data(),
                                                     y.data(),
                                                     9,
                                                     11,
                                                     1,
                                                     height,
                                                     width,
                                                     0,
                                                     0,
                                                     height,
                                                     width,
                                                     0,
                                                     1,
                                                     {},
                                                     {1, 1, 1},
                                                     MK_RESIZE_BICUBIC});
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < y.size(); ++i) {
      // Half a step for each pass, the first of which the second may pass on enlarged a little.
      EXPECT_NEAR(y[i] * 255, want[i], 1.1) << "sample " << i << " of " << height << " x " << width;
    }
  };
  check(kPillow5x6, 5, 6);
  check(kPillow14x17, 14, 17);
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
  EXPECT_EQ(message([](P& p) { p.filter = 2; }), "ResizeNormalize: filter 2 not in 0..1");
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
