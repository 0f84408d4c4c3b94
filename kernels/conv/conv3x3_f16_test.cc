#include "kernels/conv/conv3x3_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/conv/conv3x3.h"
#include "kernels/conv/conv3x3_f16_kernels_emulated.h"
#include "kernels/conv/conv3x3_f16_kernels_images.h"
#include "kernels/conv/conv3x3_f16_shapes.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/golden.h"
#include "kernels/testing/op_context.h"

namespace mk {
namespace {

using device::half;
using testing::Generate;
using testing::ToFloats;
using testing::ToHalves;

class Case {
 public:
  explicit Case(const Conv3x3Shape& s, int64_t x_offset = 0)
      : shape_(s),
        x_offset_(x_offset),
        positions_(Conv3x3OutputSide(s.height, s.stride) * Conv3x3OutputSide(s.width, s.stride)),
        kernels_(*Conv3x3F16Kernels::Load(
            context_.host(),
            context_.Module(mk_emulated_conv3x3_f16_kernels, mk_images_conv3x3_f16_kernels))),
        x_(ToHalves(Generate("x", 1, x_offset + s.height * s.width * s.in_channels, -1, 1))),
        weight_(ToHalves(Generate("w", 1, 9 * s.in_channels * s.out_channels, -1, 1))),
        bias_(Generate("b", 1, s.out_channels, -1, 1)),
        x_device_(&context_.memory(), "x", x_),
        weight_device_(&context_.memory(), "weight", weight_),
        bias_device_(&context_.memory(), "bias", bias_),
        y_device_(&context_.memory(), "y", YCount()),
        stats_device_(&context_.memory(), "stats", StatsCount()) {
    x_device_.Freeze();
    weight_device_.Freeze();
    bias_device_.Freeze();
  }

  Conv3x3F16Params Params() const {
    Conv3x3F16Params p = Sizes();
    p.x = x_device_.device() + x_offset_;
    p.weight = weight_device_.device();
    p.epilogue.bias = bias_device_.device();
    p.epilogue.y = y_device_.device();
    p.epilogue.y_stats = stats_device_.device();
    return p;
  }

  emu::LaunchFunction Launch(TileIndexF16 tile = kTileCountF16) {
    return context_.LaunchFunction([this, tile] {
      y_device_.Reset();
      stats_device_.Reset();
      return tile == kTileCountF16 ? Conv3x3F16(*context_, kernels_, Params())
                                   : Conv3x3F16WithTile(*context_, kernels_, Params(), tile);
    });
  }
  emu::OutputFunction Outputs() {
    return [this] { return testing::BytesOf(y_device_)() + testing::BytesOf(stats_device_)(); };
  }
  std::vector<float> Got() const { return ToFloats(y_device_.Host()); }

  // Against the twin, with a bound as in linear_f16's case.
  ::testing::AssertionResult IsRight() const {
    std::vector<half> y(YCount());
    std::vector<RowStats> stats(StatsCount());
    Conv3x3F16Params p = Sizes();
    p.x = x_.data() + x_offset_;
    p.weight = weight_.data();
    p.epilogue.bias = bias_.data();
    p.epilogue.y = y.data();
    p.epilogue.y_stats = stats.data();
    Conv3x3F16Cpu(p);
    const double terms = 9.0 * static_cast<double>(shape_.in_channels) + 2;
    const std::vector<float> want = ToFloats(y);
    return testing::IsNear(Got(), std::vector<double>(want.begin(), want.end()),
                           1.2 * terms * std::sqrt(terms) * 0x1p-24 + 2e-6, 0x1p-10,
                           {positions_, shape_.out_channels});
  }

  testing::OpContext& context() { return context_; }
  const Conv3x3F16Kernels& kernels() const { return kernels_; }
  emu::DeviceArray<half>& x_device() { return x_device_; }
  std::vector<half>& x() { return x_; }
  int64_t positions() const { return positions_; }

 private:
  Conv3x3F16Params Sizes() const {
    Conv3x3F16Params p = {};
    p.height = shape_.height, p.width = shape_.width, p.stride = shape_.stride;
    p.in_channels = shape_.in_channels, p.out_channels = shape_.out_channels;
    p.epilogue.activation = Activation::kGelu;
    return p;
  }
  size_t YCount() const { return static_cast<size_t>(positions_ * shape_.out_channels); }
  size_t StatsCount() const {
    return static_cast<size_t>(positions_ * CeilDiv(shape_.out_channels, kStatsGroup));
  }

  const Conv3x3Shape shape_;
  const int64_t x_offset_, positions_;
  testing::OpContext context_;
  Conv3x3F16Kernels kernels_;
  std::vector<half> x_, weight_;
  std::vector<float> bias_;
  emu::DeviceArray<half> x_device_, weight_device_;
  emu::DeviceArray<float> bias_device_;
  emu::DeviceArray<half> y_device_;
  emu::DeviceArray<RowStats> stats_device_;
};

class Conv3x3F16Tiles : public ::testing::TestWithParam<TileIndexF16> {};
INSTANTIATE_TEST_SUITE_P(EveryTile, Conv3x3F16Tiles,
                         ::testing::Values(k128x128, k128x64, k64x128, k64x64, k32x64),
                         [](const auto& info) {
                           const TileF16& tile = kTilesF16[info.param];
                           return "m" + std::to_string(tile.m) + "n" + std::to_string(tile.n);
                         });

TEST_P(Conv3x3F16Tiles, EqualTheTwinUnderEverySchedule) {
  for (const Conv3x3Shape& shape : kConv3x3F16ChunkShapes) {
    Case c(shape);
    const emu::SweepResult sweep = emu::Sweep(c.Launch(GetParam()), c.Outputs());
    ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
    EXPECT_TRUE(c.IsRight()) << shape.name;
  }
}

TEST_P(Conv3x3F16Tiles, NeedEveryBarrierAndWait) {
  MK_ON_EMULATOR_ALONE();
  // Nine stages' worth of k: each is filled again, and the last lies where the sums go.
  Case c({"mutants", 6, 6, 32, 72, 1});
  const std::vector<emu::Mutant> mutants = emu::MutateSyncs(c.Launch(GetParam()), c.Outputs());
  EXPECT_EQ(mutants.size(), 4u);
  EXPECT_EQ(testing::Survivors(mutants), std::vector<std::string>());
}

TEST_P(Conv3x3F16Tiles, ReadWhatLiesInTheMapAndNothingElse) {
  MK_ON_EMULATOR_ALONE();
  const TileF16& tile = kTilesF16[GetParam()];
  Case c({"traffic", 8, 16, 32, 128, 1});
  const emu::Report report = c.Launch(GetParam())({});
  ASSERT_TRUE(report.ok()) << report.Text();
  // Windows see three rows and three columns each, those at the border one less.
  const uint64_t seen = (3 * 8 - 2) * (3 * 16 - 2);
  const uint64_t columns = 128 / uint64_t(tile.n), rows = 128 / uint64_t(tile.m);
  const uint64_t loads = 2 * (seen * 32 * columns + 9 * 32 * 128 * rows);
  uint64_t copied = 0;
  for (const emu::SiteCounts& site : report.counts.sites) {
    if (emu::SiteText(site.site).find("loader") != std::string::npos ||
        emu::SiteText(site.site).find("matmul") != std::string::npos) {
      copied += site.global.bytes;
    }
  }
  EXPECT_EQ(copied, loads) << report.counts.Text();
  EXPECT_EQ(report.counts.bank_conflicts(), 0u) << report.counts.Text();
  EXPECT_EQ(report.counts.mma_flops, 2u * 128 * 128 * 9 * 32);
  EXPECT_EQ(c.context().launches()[0].cost.tensor_flops, report.counts.mma_flops);
}

TEST(Conv3x3F16, TakesAnyChannelsUnderEverySchedule) {
  for (const Conv3x3Shape& shape : kConv3x3F16AnyShapes) {
    Case c(shape);
    const emu::SweepResult sweep = emu::Sweep(c.Launch(), c.Outputs());
    ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
    EXPECT_EQ(c.context().launches()[0].kernel, "mk_conv3x3_f16_any");
    EXPECT_TRUE(c.IsRight()) << shape.name;
  }
}

TEST(Conv3x3F16, AMisalignedMapGoesElementByElement) {
  Case c({"misaligned", 5, 4, 16, 8, 1}, 1);
  ASSERT_TRUE(c.Launch()({}).ok());
  EXPECT_EQ(c.context().launches()[0].kernel, "mk_conv3x3_f16_any");
  EXPECT_TRUE(c.IsRight());
}

TEST(Conv3x3F16, TheElementwisePathNeedsItsBarriers) {
  MK_ON_EMULATOR_ALONE();
  Case c({"mutants", 6, 6, 21, 70, 1});
  const std::vector<emu::Mutant> mutants = emu::MutateSyncs(c.Launch(), c.Outputs());
  EXPECT_EQ(mutants.size(), 3u);
  EXPECT_EQ(testing::Survivors(mutants), std::vector<std::string>());
}

TEST(Conv3x3F16, ALargerMapChoosesItsTileAndIsRight) {
  Case c({"vmamba_t_s3_down_narrow", 28, 28, 96, 192, 2});
  const emu::Report report = c.Launch()({});
  ASSERT_TRUE(report.ok()) << report.Text();
  EXPECT_TRUE(c.IsRight());
  const TileF16& tile = kTilesF16[ChooseTileF16(14 * 14, 192, c.kernels().sms)];
  EXPECT_EQ(c.context().launches()[0].grid.x, TileBlocksF16(tile, 14 * 14, 192));
}

TEST(Conv3x3F16, CarriesNanToTheWindowsThatSeeIt) {
  Case c({"nan", 6, 7, 8, 8, 1});
  c.x()[(2 * 7 + 3) * 8 + 5].bits = 0x7e00;  // row 2, column 3
  c.x_device().Set(c.x());
  ASSERT_TRUE(c.Launch()({}).ok());
  const std::vector<float> y = c.Got();
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 7; ++j) {
      EXPECT_EQ(std::isnan(y[static_cast<size_t>((i * 7 + j) * 8)]),
                std::abs(i - 2) <= 1 && std::abs(j - 3) <= 1)
          << i << " " << j;
    }
  }
}

TEST(Conv3x3F16Twin, EqualsTheReferenceModelsNumbers) {
  for (const testing::OpCase& op_case : testing::ReadOpCases(testing::kOpGoldens, "conv3x3")) {
    const auto& x = op_case.Input("x");
    const auto& stored = op_case.Input("weight");
    const int64_t ci = x.shape[0], co = stored.shape[0];
    const int64_t positions = op_case.output.shape[1] * op_case.output.shape[2];
    const std::vector<half> tokens =
        ToHalves(testing::Transposed(x.values, ci, x.shape[1] * x.shape[2]));
    std::vector<half> weight(stored.values.size());
    RelayConv3x3F16Weight(stored.values.data(), co, ci, weight.data());
    std::vector<float> y(op_case.output.values.size());
    Conv3x3F16Params p = {tokens.data(), weight.data(), x.shape[1], x.shape[2], ci, co, 0, {}};
    p.stride = static_cast<int64_t>(op_case.attributes.at("stride"));
    p.epilogue.bias = op_case.Input("bias").values.data();
    p.epilogue.y_fp32 = y.data();
    ASSERT_TRUE(CheckConv3x3F16(p).ok());
    Conv3x3F16Cpu(p);
    // The operands were rounded to fp16, the reference's were not.
    EXPECT_TRUE(testing::IsNearRelL2(testing::Transposed(y, positions, co), op_case.output.values,
                                     1e-3, op_case.output.shape));
  }
}

TEST(Conv3x3F16, RefusesEachBrokenPrecondition) {
  Case c({"refused", 4, 4, 2, 3, 1});
  const auto message = [&](auto change) {
    Conv3x3F16Params p = c.Params();
    change(p);
    const Status status = Conv3x3F16(*c.context(), c.kernels(), p);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = Conv3x3F16Params;
  RowStats stats;
  float sums;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "Conv3x3F16: x is null");
  EXPECT_EQ(message([](P& p) { p.weight = nullptr; }), "Conv3x3F16: weight is null");
  EXPECT_EQ(message([](P& p) { p.epilogue.y = nullptr; }),
            "Conv3x3F16: neither of y and y_fp32 given");
  EXPECT_EQ(message([](P& p) { p.height = 0; }), "Conv3x3F16: height 0 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.width = -3; }), "Conv3x3F16: width -3 not in 1..16777216");
  EXPECT_EQ(message([](P& p) { p.in_channels = 0; }),
            "Conv3x3F16: in_channels 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.out_channels = 1 << 21; }),
            "Conv3x3F16: out_channels 2097152 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.stride = 3; }), "Conv3x3F16: stride 3 not in 1..2");
  EXPECT_EQ(message([](P& p) { p.height = p.width = 1 << 24; }),
            "Conv3x3F16: x of 281474976710656 x 2 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.height = 1 << 24, p.width = 1 << 12, p.in_channels = 1; }),
            "Conv3x3F16: positions 68719476736 not in 1..1073741824");
  EXPECT_EQ(message([](P& p) { p.epilogue.y = const_cast<half*>(p.x); }), "Conv3x3F16: y is x");
  EXPECT_EQ(message([&](P& p) {
              p.epilogue.norm_stats = &stats, p.epilogue.norm_sums = &sums;
              p.epilogue.norm_columns = p.epilogue.norm_groups = 1;
            }),
            "Conv3x3F16: a norm before a convolution is not folded");
  EXPECT_EQ(Conv3x3F16WithTile(*c.context(), c.kernels(), c.Params(), k64x64).message(),
            "Conv3x3F16: operands do not move by 16 bytes");
  EXPECT_TRUE(c.context().launches().empty());
}

TEST(Conv3x3F16, CostCountsOperandsOnce) {
  Case c({"cost", 4, 6, 2, 3, 2});
  const LaunchCost cost = Conv3x3F16Cost(c.Params());
  EXPECT_EQ(cost.tensor_flops, 2u * 9 * (2 * 3) * 2 * 3);
  EXPECT_EQ(cost.flops, (2u + 4 + 5) * (2 * 3) * 3);
  EXPECT_EQ(cost.bytes, 2u * (4 * 6 * 2 + 9 * 2 * 3 + 2 * 3 * 3) + 4 * 3 + 8 * (2 * 3));
}

}  // namespace
}  // namespace mk
