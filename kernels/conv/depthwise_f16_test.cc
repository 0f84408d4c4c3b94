#include "kernels/conv/depthwise_f16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/conv/depthwise_f16_kernels_emulated.h"
#include "kernels/conv/depthwise_f16_kernels_images.h"
#include "kernels/conv/depthwise_f16_shapes.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/op_context.h"

namespace mk {
namespace {

using device::half;
using emu::DeviceArray;
using testing::Generate;
using testing::IsNear;
using testing::OpContext;
using testing::ToFloats;
using testing::ToHalves;

struct Problem {
  Problem(OpContext& context, const DepthwiseF16Shape& shape, int32_t side, Activation activation,
          bool biased)
      : context(context),
        kernels(*DepthwiseF16Kernels::Load(
            context.host(),
            context.Module(mk_emulated_depthwise_f16_kernels, mk_images_depthwise_f16_kernels))),
        shape(shape),
        side(side),
        activation(activation),
        biased(biased),
        x(ToHalves(Generate("x", 1, shape.height * shape.width * shape.channels, -1, 1))),
        weight(Generate("weight", 1, side * side * shape.channels, -1, 1)),
        bias(Generate("bias", 1, shape.channels, -1, 1)),
        x_device(&context.memory(), "x", x),
        weight_device(&context.memory(), "weight", weight),
        bias_device(&context.memory(), "bias", bias),
        y_device(&context.memory(), "y", x.size()) {}

  DepthwiseF16Params Params() {
    return {x_device.device(),
            weight_device.device(),
            biased ? bias_device.device() : nullptr,
            y_device.device(),
            shape.height,
            shape.width,
            shape.channels,
            side,
            activation};
  }
  Status Run() { return DepthwiseF16(*context, kernels, Params()); }
  emu::LaunchFunction Launch() {
    return context.LaunchFunction([this] {
      y_device.Reset();
      return Run();
    });
  }
  // Sums of up to 50 terms of size 1 in fp32, then an ulp of fp16 where the two round apart.
  ::testing::AssertionResult IsTheTwins() {
    std::vector<half> want(x.size());
    DepthwiseF16Params p = Params();
    p.x = x.data();
    p.weight = weight.data();
    p.bias = biased ? bias.data() : nullptr;
    p.y = want.data();
    DepthwiseF16Cpu(p);
    const std::vector<float> floats = ToFloats(want);
    return IsNear(ToFloats(y_device.Host()), {floats.begin(), floats.end()}, 1e-5, 0x1p-10,
                  {shape.height, shape.width, shape.channels});
  }

  OpContext& context;
  const DepthwiseF16Kernels kernels;
  const DepthwiseF16Shape shape;
  const int32_t side;
  const Activation activation;
  const bool biased;
  std::vector<half> x;
  const std::vector<float> weight, bias;
  DeviceArray<half> x_device;
  DeviceArray<float> weight_device, bias_device;
  DeviceArray<half> y_device;
};

TEST(DepthwiseF16, EqualsTheTwinUnderEverySchedule) {
  int variant = 0;
  for (const int32_t side : {3, 7}) {
    for (const DepthwiseF16Shape& shape : kDepthwiseF16RaggedShapes) {
      const auto activation = static_cast<Activation>(variant % 4);
      OpContext context;
      Problem problem(context, shape, side, activation, variant++ % 3 == 1);
      const emu::SweepResult sweep =
          emu::Sweep(problem.Launch(), testing::BytesOf(problem.y_device));
      ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
      EXPECT_TRUE(problem.IsTheTwins()) << shape.name << ", side " << side;
    }
  }
}

TEST(DepthwiseF16, EqualsTheTwinOnModelShapes) {
  for (const DepthwiseF16Shape& shape : kDepthwiseF16ModelShapes) {
    OpContext context;
    Problem problem(context, shape, 3, Activation::kSilu, false);
    ASSERT_TRUE(problem.Run().ok()) << shape.name << ": " << context.error();
    EXPECT_TRUE(problem.IsTheTwins()) << shape.name;
  }
}

TEST(DepthwiseF16, CarriesNanToItsNeighboursInItsChannelOnly) {
  OpContext context;
  Problem problem(context, {"nan", 6, 9, 8}, 3, Activation::kSilu, false);
  problem.x[(2 * 9 + 4) * 8 + 3] = ToHalves({NAN})[0];  // row 2, column 4, channel 3
  problem.x_device.Set(problem.x);
  ASSERT_TRUE(problem.Run().ok()) << context.error();
  const std::vector<float> y = ToFloats(problem.y_device.Host());
  for (int i = 0; i < static_cast<int>(y.size()); ++i) {
    const int row = i / 72, column = i / 8 % 9;
    const bool near = std::abs(row - 2) <= 1 && std::abs(column - 4) <= 1 && i % 8 == 3;
    EXPECT_EQ(std::isnan(y[static_cast<size_t>(i)]), near) << row << " " << column;
  }
}

TEST(DepthwiseF16, MovesWhatItSays) {
  MK_ON_EMULATOR_ALONE();
  OpContext context;
  constexpr int kHeight = 6, kWidth = 8, kChannels = 32;
  Problem problem(context, {"traffic", kHeight, kWidth, kChannels}, 3, Activation::kNone, false);
  ASSERT_TRUE(problem.Run().ok()) << context.error();
  const testing::OpLaunch& launch = context.launches()[0];
  // Rows of windows inside the map: 3 per row of outputs, but 2 at the two edges. Of the 6 columns
  // of a strip the map has 5 at each edge.
  const uint64_t rows = 3 * kHeight - 2;
  const uint64_t x = rows * (5 + 5) * kChannels * 2;
  const uint64_t weights = rows * (kWidth / 4) * 3 * kChannels * 4;
  EXPECT_EQ(launch.report.counts.global_bytes(), x + weights + 2u * kHeight * kWidth * kChannels);
  EXPECT_EQ(launch.report.counts.wasted_sectors(), 0u);
  EXPECT_EQ(launch.cost.bytes, 4u * kHeight * kWidth * kChannels + 4u * 9 * kChannels);
  EXPECT_EQ(launch.cost.flops, 18u * kHeight * kWidth * kChannels);
}

TEST(DepthwiseF16, RefusesEachBrokenPrecondition) {
  OpContext context;
  Problem problem(context, {"refused", 4, 4, 2}, 3, Activation::kNone, false);
  const auto message = [&](auto change) {
    DepthwiseF16Params params = problem.Params();
    change(params);
    const Status status = DepthwiseF16(*context, problem.kernels, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = DepthwiseF16Params;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "DepthwiseF16: x is null");
  EXPECT_EQ(message([](P& p) { p.weight = nullptr; }), "DepthwiseF16: weight is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "DepthwiseF16: y is null");
  EXPECT_EQ(message([](P& p) { p.height = 0; }), "DepthwiseF16: height 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.width = -1; }), "DepthwiseF16: width -1 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.channels = 1 << 21; }),
            "DepthwiseF16: channels 2097152 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.height = 1 << 20, p.width = 1 << 12; }),
            "DepthwiseF16: 1048576 x 4096 x 2 takes 2147483648 threads, 2^31 or more");
  EXPECT_EQ(message([](P& p) { p.side = 5; }), "DepthwiseF16: side 5 is neither 3 nor 7");
  EXPECT_EQ(message([](P& p) { p.activation = static_cast<Activation>(4); }),
            "DepthwiseF16: activation 4 is unknown");
  EXPECT_EQ(message([](P& p) { p.y = const_cast<half*>(p.x); }), "DepthwiseF16: y is x");
}

}  // namespace
}  // namespace mk
