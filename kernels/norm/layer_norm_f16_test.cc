#include "kernels/norm/layer_norm_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/norm/layer_norm_f16_kernels_emulated.h"
#include "kernels/norm/layer_norm_f16_kernels_images.h"
#include "kernels/norm/layer_norm_f16_shapes.h"
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

constexpr float kEpsilon = 1e-5f;

struct Fused {
  bool residual = false;
  Activation activation = Activation::kNone;
  bool rms = false;
  bool in_place = false;
};

// One problem on the emulator and in the twin.
class Problem {
 public:
  Problem(OpContext& context, const LayerNormF16Shape& shape, const Fused& fused = {},
          float low = -1, float high = 1)
      : context_(context),
        kernels_(*LayerNormF16Kernels::Load(
            context.host(),
            context.Module(mk_emulated_layer_norm_f16_kernels, mk_images_layer_norm_f16_kernels))),
        fused_(fused),
        rows_(shape.rows),
        channels_(shape.channels),
        count_(static_cast<size_t>(rows_ * channels_)),
        x_(ToHalves(Generate(std::string(shape.name) + "/x", 1, rows_ * channels_, low, high))),
        residual_(ToHalves(Generate("residual", 1, rows_ * channels_, -1, 1))),
        weight_(Generate("weight", 1, channels_, 0.5f, 1.5f)),
        bias_(Generate("bias", 1, channels_, -1, 1)),
        x_device_(&context.memory(), "x", x_),
        residual_device_(&context.memory(), "residual", residual_),
        sum_device_(&context.memory(), "sum", count_),
        weight_device_(&context.memory(), "weight", weight_),
        bias_device_(&context.memory(), "bias", bias_),
        y_device_(&context.memory(), "y", count_) {}

  LayerNormF16Params Params() {
    return {x_device_.device(),
            fused_.residual ? residual_device_.device() : nullptr,
            fused_.residual ? sum_device_.device() : nullptr,
            weight_device_.device(),
            fused_.rms ? nullptr : bias_device_.device(),
            fused_.in_place ? x_device_.device() : y_device_.device(),
            rows_,
            channels_,
            kEpsilon,
            fused_.activation,
            fused_.rms ? 1u : 0u};
  }

  Status Run() {
    x_device_.Set(x_);
    return LayerNormF16(*context_, kernels_, Params());
  }
  emu::LaunchFunction Launch() {
    return context_.LaunchFunction([this] {
      y_device_.Reset();
      sum_device_.Reset();
      return Run();
    });
  }
  std::string Outputs() {
    return testing::BytesOf(fused_.in_place ? x_device_ : y_device_)() +
           (fused_.residual ? testing::BytesOf(sum_device_)() : "");
  }

  // Both results are within half an ulp of an fp16 of their fp32 or double, which differ by
  // roundings of fp32: one ulp, 2^-10 of the value, where they round apart.
  void ExpectTheTwins(double absolute = 3e-6) {
    std::vector<half> want_sum(count_), want(count_);
    LayerNormF16Params p = Params();
    p.x = x_.data();
    p.residual = fused_.residual ? residual_.data() : nullptr;
    p.sum = fused_.residual ? want_sum.data() : nullptr;
    p.weight = weight_.data();
    p.bias = fused_.rms ? nullptr : bias_.data();
    p.y = want.data();
    LayerNormF16Cpu(p);
    const std::vector<float> floats = ToFloats(want);
    EXPECT_TRUE(IsNear(ToFloats((fused_.in_place ? x_device_ : y_device_).Host()),
                       {floats.begin(), floats.end()}, absolute, 0x1p-10, {rows_, channels_}));
    if (!fused_.residual) return;
    const std::vector<float> sums = ToFloats(want_sum);
    EXPECT_TRUE(IsNear(ToFloats(sum_device_.Host()), {sums.begin(), sums.end()}, 0, 0));
  }

  OpContext& context_;
  const LayerNormF16Kernels kernels_;
  const Fused fused_;
  const int64_t rows_, channels_;
  const size_t count_;
  std::vector<half> x_, residual_;
  const std::vector<float> weight_, bias_;
  DeviceArray<half> x_device_, residual_device_, sum_device_;
  DeviceArray<float> weight_device_, bias_device_;
  DeviceArray<half> y_device_;
};

TEST(LayerNormF16, EqualsTheTwinUnderEverySchedule) {
  int variant = 0;
  for (const LayerNormF16Shape& shape : kLayerNormF16RaggedShapes) {
    // Each shape with one of these; all of them come to each way of reading a row.
    const Fused all[] = {{},
                         {true, Activation::kGelu, false, false},
                         {false, Activation::kNone, true, true},
                         {true, Activation::kSilu, true, true}};
    OpContext context;
    Problem problem(context, shape, all[variant++ % 4]);
    const emu::SweepResult sweep = emu::Sweep(problem.Launch(), [&] { return problem.Outputs(); });
    ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
    problem.ExpectTheTwins();
  }
}

TEST(LayerNormF16, EqualsTheTwinWithEachFusedPart) {
  for (const LayerNormF16Shape shape :
       {LayerNormF16Shape{"lanes16", 5, 96}, {"wide", 2, 1040}, {"any", 3, 21}}) {
    for (const Fused& fused : {Fused{},
                               {true},
                               {false, Activation::kRelu},
                               {false, Activation::kGelu},
                               {false, Activation::kSilu},
                               {false, Activation::kNone, true},
                               {true, Activation::kGelu, false, true}}) {
      OpContext context;
      Problem problem(context, shape, fused);
      ASSERT_TRUE(problem.Run().ok()) << context.error();
      problem.ExpectTheTwins();
    }
  }
}

TEST(LayerNormF16, EqualsTheTwinOnModelShapes) {
  for (const LayerNormF16Shape& shape : kLayerNormF16ModelShapes) {
    OpContext context;
    Problem problem(context, shape);
    ASSERT_TRUE(problem.Run().ok()) << shape.name << ": " << context.error();
    problem.ExpectTheTwins();
  }
}

TEST(LayerNormF16, KeepsPrecisionFarFromZero) {
  // Mean 1000, halves half a unit apart: a variance from squares in fp32 would be off by a tenth.
  // The mean is off by at most an ulp of 1000, 6e-5, of which the deviation of 0.6 makes 1e-4.
  for (const LayerNormF16Shape shape : {LayerNormF16Shape{"far", 4, 96}, {"far_any", 2, 77}}) {
    OpContext context;
    Problem problem(context, shape, {}, 999.0f, 1001.0f);
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    problem.ExpectTheTwins(1.5e-4);
  }
}

TEST(LayerNormF16, TheTwinIsTheFormula) {
  // By hand: 1, 3 have mean 2 and variance 1.
  std::vector<half> x = ToHalves({1, 3}), y(2);
  const std::vector<float> weight = {2, 4}, bias = {0.5f, -1};
  LayerNormF16Params p = {x.data(),    nullptr,           nullptr, weight.data(),
                          bias.data(), y.data(),          1,       2,
                          0,           Activation::kNone, 0};
  LayerNormF16Cpu(p);
  EXPECT_EQ(ToFloats(y), (std::vector<float>{-1.5f, 3}));
  p.rms = 1;  // mean square 5
  LayerNormF16Cpu(p);
  EXPECT_NEAR(ToFloats(y)[1], 3 / std::sqrt(5.0) * 4 - 1, 2e-3);
}

TEST(LayerNormF16, CarriesNanToItsRowOnly) {
  for (const LayerNormF16Shape shape : {LayerNormF16Shape{"lanes8", 6, 16}, {"any", 3, 5}}) {
    OpContext context;
    Problem problem(context, shape);
    problem.x_[shape.channels + 2] = ToHalves({NAN})[0];  // row 1
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    const std::vector<float> y = ToFloats(problem.y_device_.Host());
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isnan(y[i]), i / static_cast<size_t>(shape.channels) == 1) << i;
    }
  }
}

TEST(LayerNormF16, MovesWhatItSays) {
  MK_ON_EMULATOR_ALONE();
  for (const bool residual : {false, true}) {
    OpContext context;
    Problem problem(context, {"traffic", 32, 256}, {residual});
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    const emu::Counts& counts = context.launches()[0].report.counts;
    EXPECT_EQ(counts.global_bytes(), (residual ? 8u : 4u) * 32 * 256 + 32u * 8 * 256);
    // A lane's 8 floats of weights are two loads, each of half of every sector: 4 such loads a row.
    EXPECT_EQ(counts.wasted_sectors(), 32u * 4 * 16);
    EXPECT_EQ(counts.shuffles, 32u * 10);
    EXPECT_EQ(counts.barriers, 0u);
    EXPECT_EQ(context.launches()[0].cost.bytes, (residual ? 8u : 4u) * 32 * 256 + 8u * 256);
    EXPECT_EQ(context.launches()[0].cost.flops, 8u * 32 * 256);
  }
}

TEST(LayerNormF16, TakesWhatIsNotAlignedOneByOne) {
  OpContext context;
  Problem problem(context, {"misaligned", 3, 16});
  LayerNormF16Params params = problem.Params();
  params.x += 1;
  params.rows = 2;
  ASSERT_TRUE(LayerNormF16(*context, problem.kernels_, params).ok()) << context.error();
  EXPECT_EQ(context.launches()[0].kernel, "mk_layer_norm_f16_any");
}

TEST(LayerNormF16, RefusesEachBrokenPrecondition) {
  OpContext context;
  Problem problem(context, {"refused", 2, 8}, {true});
  const auto message = [&](auto change) {
    LayerNormF16Params params = problem.Params();
    change(params);
    const Status status = LayerNormF16(*context, problem.kernels_, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = LayerNormF16Params;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "LayerNormF16: x is null");
  EXPECT_EQ(message([](P& p) { p.weight = nullptr; }), "LayerNormF16: weight is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "LayerNormF16: y is null");
  EXPECT_EQ(message([](P& p) { p.sum = nullptr; }), "LayerNormF16: a residual, but sum is null");
  EXPECT_EQ(message([](P& p) { p.residual = nullptr; }),
            "LayerNormF16: a sum, but residual is null");
  EXPECT_EQ(message([](P& p) { p.rows = 0; }), "LayerNormF16: rows 0 not in 1..2147483647");
  EXPECT_EQ(message([](P& p) { p.channels = 4097; }), "LayerNormF16: channels 4097 not in 1..4096");
  EXPECT_EQ(message([](P& p) { p.epsilon = -1; }),
            "LayerNormF16: epsilon -1.000000 is not finite and >= 0");
  EXPECT_EQ(message([](P& p) { p.activation = static_cast<Activation>(9); }),
            "LayerNormF16: activation 9 is unknown");
  EXPECT_EQ(message([](P& p) { p.rms = 2; }), "LayerNormF16: rms 2 not in 0..1");
  EXPECT_EQ(message([](P& p) { p.y = p.sum; }), "LayerNormF16: y is sum");
}

}  // namespace
}  // namespace mk
