#include "kernels/image/resize_normalize_f16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/image/resize_normalize.h"
#include "kernels/image/resize_normalize_f16_kernels_emulated.h"
#include "kernels/image/resize_normalize_f16_kernels_images.h"
#include "kernels/image/resize_normalize_f16_shapes.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/op_context.h"

namespace mk {
namespace {

using device::half;
using emu::DeviceArray;
using testing::IsNear;
using testing::OpContext;
using testing::RoundedToHalf;
using testing::ToFloats;

constexpr float kMean[3] = {0.485f, 0.456f, 0.406f};
constexpr float kStd[3] = {0.229f, 0.224f, 0.225f};

struct Problem {
  Problem(OpContext& context, const ResizeNormalizeShape& shape, mk_u32 filter)
      : context(context),
        kernels(*ResizeNormalizeF16Kernels::Load(
            context.host(), context.Module(mk_emulated_resize_normalize_f16_kernels,
                                           mk_images_resize_normalize_f16_kernels))),
        s(shape),
        filter(filter),
        image(Pixels(shape)),
        count(static_cast<size_t>((s.crop_height + 2 * s.pad) * (s.crop_width + 2 * s.pad) *
                                  s.out_channels)),
        image_device(&context.memory(), "image", image),
        y_device(&context.memory(), "y", count) {}

  static std::vector<uint8_t> Pixels(const ResizeNormalizeShape& s) {
    std::vector<uint8_t> pixels;
    for (const float v : testing::Generate(s.name, 1, s.height * s.width * s.channels, 0, 256)) {
      pixels.push_back(static_cast<uint8_t>(v));
    }
    return pixels;
  }
  template <typename Params, typename Out>
  Params Fill(const uint8_t* pixels, Out* y) const {
    Params p = {
        pixels,          y,          s.height,    s.width,       s.channels,   s.resized_height,
        s.resized_width, s.crop_top, s.crop_left, s.crop_height, s.crop_width, s.pad,
        s.out_channels,  {},         {},          filter};
    std::copy(kMean, kMean + 3, p.mean);
    std::copy(kStd, kStd + 3, p.std);
    return p;
  }
  ResizeNormalizeF16Params Params() {
    return Fill<ResizeNormalizeF16Params>(image_device.device(), y_device.device());
  }
  Status Run() { return ResizeNormalizeF16(*context, kernels, Params()); }
  emu::LaunchFunction Launch() {
    return context.LaunchFunction([this] {
      y_device.Reset();
      return Run();
    });
  }
  std::vector<float> Twins() const {
    std::vector<float> y(count);
    testing::TestContext cpu;
    EXPECT_TRUE(ResizeNormalizeCpu(*cpu, Fill<ResizeNormalizeParams>(image.data(), y.data())).ok());
    return y;
  }
  bool Resizes() const { return s.resized_height != s.height || s.resized_width != s.width; }
  // Without a resize to the bit; else 1e-3 of a level over 255 and std 0.22, and the rounding.
  ::testing::AssertionResult IsTheTwins() {
    const std::vector<float> twins = Resizes() ? Twins() : RoundedToHalf(Twins());
    const bool exact = !Resizes();
    return IsNear(ToFloats(y_device.Host()), {twins.begin(), twins.end()}, exact ? 0 : 2e-5,
                  exact ? 0 : 0x1p-11,
                  {s.crop_height + 2 * s.pad, s.crop_width + 2 * s.pad, s.out_channels});
  }

  OpContext& context;
  const ResizeNormalizeF16Kernels kernels;
  const ResizeNormalizeShape s;
  const mk_u32 filter;
  const std::vector<uint8_t> image;
  const size_t count;
  DeviceArray<uint8_t> image_device;
  DeviceArray<half> y_device;
};

TEST(ResizeNormalizeF16, EqualsTheTwinUnderEverySchedule) {
  for (const mk_u32 filter : {MK_RESIZE_TRIANGLE, MK_RESIZE_BICUBIC}) {
    for (const ResizeNormalizeShape& shape : kResizeNormalizeRaggedShapes) {
      OpContext context;
      Problem problem(context, shape, filter);
      if (problem.count > 3000) {  // once
        ASSERT_TRUE(problem.Run().ok()) << shape.name << ": " << context.error();
      } else {
        const emu::SweepResult sweep =
            emu::Sweep(problem.Launch(), testing::BytesOf(problem.y_device));
        ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
      }
      EXPECT_TRUE(problem.IsTheTwins()) << shape.name << ", filter " << filter;
      EXPECT_EQ(context.scratch_used_bytes(), 0u);
      EXPECT_LE(context.scratch_peak_bytes(),
                static_cast<uint64_t>(ResizeNormalizeF16Scratch(problem.Params()) + 63));
    }
  }
}

TEST(ResizeNormalizeF16, EqualsTheTwinOnAModelsImages) {
  for (const ResizeNormalizeShape& shape :
       {kResizeNormalizeModelShapes[0],
        ResizeNormalizeShape{"a_photo", 270, 480, 3, 28, 49, 0, 10, 28, 28, 2, 1}}) {
    OpContext context;
    Problem problem(context, shape, MK_RESIZE_TRIANGLE);
    ASSERT_TRUE(problem.Run().ok()) << shape.name << ": " << context.error();
    EXPECT_TRUE(problem.IsTheTwins()) << shape.name;
    EXPECT_EQ(context.launches().size(), problem.Resizes() ? 2u : 1u);
  }
}

TEST(ResizeNormalizeF16, FindsTapsFarFromZero) {
  // Of 2^20 samples the last ones: in fp32 a centre would be off by a sixteenth of a sample.
  for (const mk_u32 filter : {MK_RESIZE_TRIANGLE, MK_RESIZE_BICUBIC}) {
    OpContext context;
    Problem problem(
        context, {"far", 1, 1 << 20, 1, 1, (1 << 20) - 7777, 0, (1 << 20) - 7777 - 40, 1, 40, 0, 1},
        filter);
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    EXPECT_TRUE(problem.IsTheTwins());
  }
}

TEST(ResizeNormalizeF16, MovesWhatItSays) {
  MK_ON_EMULATOR_ALONE();
  OpContext context;
  Problem direct(context, {"direct", 16, 32, 1, 16, 32, 0, 0, 16, 32, 0, 1}, MK_RESIZE_TRIANGLE);
  ASSERT_TRUE(direct.Run().ok()) << context.error();
  EXPECT_EQ(context.launches()[0].report.counts.footprint_bytes(), 16u * 32 * 3);
  EXPECT_EQ(context.launches()[0].cost.bytes, 16u * 32 * 3);
  context.ClearLaunches();
  Problem halved(context, {"halved", 32, 64, 3, 16, 32, 0, 0, 16, 32, 0, 3}, MK_RESIZE_TRIANGLE);
  ASSERT_TRUE(halved.Run().ok()) << context.error();
  uint64_t said = 0;
  for (const testing::OpLaunch& launch : context.launches()) {
    EXPECT_EQ(launch.report.counts.footprint_bytes(), launch.cost.bytes) << launch.kernel;
    said += launch.cost.bytes;
  }
  EXPECT_EQ(said, 32u * 64 * 3 + 8u * 32 * 32 * 3 + 2u * 16 * 32 * 3);
  EXPECT_EQ(said, ResizeNormalizeF16Cost(halved.Params()).bytes);
}

TEST(ResizeNormalizeF16, RefusesEachBrokenPrecondition) {
  OpContext context;
  Problem problem(context, {"refused", 8, 8, 3, 6, 6, 1, 1, 4, 4, 1, 3}, MK_RESIZE_TRIANGLE);
  const auto message = [&](auto change) {
    ResizeNormalizeF16Params params = problem.Params();
    change(params);
    const Status status = ResizeNormalizeF16(*context, problem.kernels, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = ResizeNormalizeF16Params;
  EXPECT_EQ(message([](P& p) { p.image = nullptr; }), "ResizeNormalizeF16: image is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "ResizeNormalizeF16: y is null");
  EXPECT_EQ(message([](P& p) { p.channels = 4; }),
            "ResizeNormalizeF16: channels 4 is neither 1 nor 3");
  EXPECT_EQ(message([](P& p) { p.crop_top = 3; }), "ResizeNormalizeF16: y window 3+4 not in 0..6");
  EXPECT_EQ(message([](P& p) { p.filter = 2; }), "ResizeNormalizeF16: filter 2 not in 0..1");
  EXPECT_EQ(message([](P& p) { p.height = 65536; }),
            "ResizeNormalizeF16: height 65536 not in 1..65535");
  EXPECT_EQ(message([](P& p) { p.pad = 16385; }), "ResizeNormalizeF16: pad 16385 not in 0..16384");
  EXPECT_EQ(message([](P& p) {
              p.height = p.resized_height = p.crop_height = 65535;
              p.crop_top = 0;
            }),
            "ResizeNormalizeF16: crop_height + 2 pad 65537 not in 1..65535");
}

}  // namespace
}  // namespace mk
