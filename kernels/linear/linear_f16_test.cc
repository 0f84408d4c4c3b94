#include "kernels/linear/linear_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/linear/testing/linear_f16_case.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/golden.h"

namespace mk {
namespace {

using device::half;
using testing::LinearF16Case;
using testing::LinearF16Options;
using testing::ToHalves;

LinearF16Options With(Activation activation) {
  LinearF16Options options;
  options.activation = activation;
  return options;
}

class LinearF16Tiles : public ::testing::TestWithParam<TileIndexF16> {};
INSTANTIATE_TEST_SUITE_P(EveryTile, LinearF16Tiles,
                         ::testing::Values(k128x128, k128x64, k64x128, k64x64, k32x64),
                         [](const auto& info) {
                           const TileF16& tile = kTilesF16[info.param];
                           return "m" + std::to_string(tile.m) + "n" + std::to_string(tile.n);
                         });

TEST_P(LinearF16Tiles, EqualTheTwinUnderEverySchedule) {
  for (const LinearF16Shape& shape : kLinearF16ChunkShapes) {
    LinearF16Options options = With(Activation::kGelu);
    options.residual = true;
    options.y_stats = true;
    LinearF16Case c(shape, options);
    const emu::SweepResult sweep = emu::Sweep(c.Launch(GetParam()), c.Outputs());
    ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
    EXPECT_TRUE(c.IsRight());
  }
}

TEST_P(LinearF16Tiles, NeedEveryBarrierAndWait) {
  MK_ON_EMULATOR_ALONE();
  // Six stages' worth of k: each is filled again, and the last lies where the sums go.
  LinearF16Case c({"mutants", 33, 72, 192});
  const std::vector<emu::Mutant> mutants = emu::MutateSyncs(c.Launch(GetParam()), c.Outputs());
  EXPECT_EQ(mutants.size(), 4u);  // wait, barrier, barrier before the sums, their SyncWarp
  EXPECT_EQ(testing::Survivors(mutants), std::vector<std::string>());
}

TEST_P(LinearF16Tiles, MoveWhatTheySay) {
  MK_ON_EMULATOR_ALONE();
  const TileF16& tile = kTilesF16[GetParam()];
  const LinearF16Shape shape = {"traffic", 2 * tile.m, 3 * tile.n, 96};
  LinearF16Options options;
  options.bias = false;
  options.residual = true;
  LinearF16Case c(shape, options);
  const emu::Report report = c.Launch(GetParam())({});
  ASSERT_TRUE(report.ok()) << report.Text();
  const auto m = static_cast<uint64_t>(shape.m), n = static_cast<uint64_t>(shape.n);
  const uint64_t operands = 2 * (m * 96 * 3 + n * 96 * 2);
  EXPECT_EQ(report.counts.async_copies * 16, operands);
  EXPECT_EQ(report.counts.global_bytes(), operands + 2 * (2 * m * n));
  EXPECT_EQ(report.counts.bank_conflicts(), 0u) << report.counts.Text();
  EXPECT_EQ(report.counts.wasted_sectors(), 0u) << report.counts.Text();
  EXPECT_EQ(report.counts.mma_flops, 2 * m * n * 96);
  EXPECT_EQ(report.counts.barriers, 6u * (3 + 1));
  ASSERT_EQ(c.context().launches().size(), 1u);
  EXPECT_EQ(c.context().launches()[0].cost.tensor_flops, report.counts.mma_flops);
  EXPECT_EQ(int(c.context().launches()[0].shared_bytes), TileSharedBytesF16(tile));
}

TEST(LinearF16, TakesOperandsOfAnyAlignmentUnderEverySchedule) {
  for (const LinearF16Shape& shape : kLinearF16AnyShapes) {
    LinearF16Options options = With(Activation::kSilu);
    options.residual = true;
    options.y_stats = true;
    options.x_offset = shape.k % 8 == 0 ? 1 : 0;
    LinearF16Case c(shape, options);
    const emu::SweepResult sweep = emu::Sweep(c.Launch(), c.Outputs());
    ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
    EXPECT_EQ(c.context().launches()[0].kernel, "mk_linear_f16_any");
    EXPECT_TRUE(c.IsRight());
  }
}

TEST(LinearF16, TheElementwisePathNeedsItsBarriers) {
  MK_ON_EMULATOR_ALONE();
  LinearF16Case c({"mutants", 33, 67, 191});
  const std::vector<emu::Mutant> mutants = emu::MutateSyncs(c.Launch(), c.Outputs());
  EXPECT_EQ(mutants.size(), 3u);
  EXPECT_EQ(testing::Survivors(mutants), std::vector<std::string>());
}

TEST(LinearF16, EveryEpilogue) {
  for (const bool fp32 : {false, true}) {
    for (const int64_t n : {40, 43}) {  // stored by 16 bytes, and one by one
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
        for (const int bits : {0, 1, 2, 3}) {
          LinearF16Options options = With(activation);
          options.bias = (bits & 1) != 0;
          options.residual = (bits & 2) != 0;
          options.fp32 = fp32;
          options.scale = bits == 3 ? -0.25f : 1.0f;
          LinearF16Case c({"epilogue", 21, n, 64}, options);
          const emu::Report report = c.Launch()({});
          ASSERT_TRUE(report.ok()) << report.Text();
          EXPECT_TRUE(c.IsRight()) << fp32 << n << static_cast<int>(activation) << bits;
        }
      }
    }
  }
}

TEST(LinearF16, StoresToAnyAlignment) {
  for (const bool fp32 : {false, true}) {
    LinearF16Options options = With(Activation::kNone);
    options.residual = true;
    options.fp32 = fp32;
    options.y_offset = 1;
    LinearF16Case c({"misaligned", 21, 40, 64}, options);
    const emu::Report report = c.Launch()({});
    ASSERT_TRUE(report.ok()) << report.Text();
    EXPECT_TRUE(c.IsRight());
    EXPECT_NE(c.context().launches()[0].kernel, "mk_linear_f16_any");  // x and W are aligned
  }
}

TEST(LinearF16, AddsTheResidualInPlace) {
  for (const int64_t n : {64, 67}) {
    LinearF16Options options;
    options.in_place = true;
    LinearF16Case c({"in_place", 70, n, 40}, options);
    const emu::SweepResult sweep = emu::Sweep(c.Launch(), c.Outputs());
    ASSERT_TRUE(sweep.ok) << sweep.text;
    EXPECT_TRUE(c.IsRight());
  }
}

TEST(LinearF16, ALargerProductChoosesItsTileAndIsRight) {
  LinearF16Case c({"larger", 520, 384, 96}, With(Activation::kGelu));
  const emu::Report report = c.Launch()({});
  ASSERT_TRUE(report.ok()) << report.Text();
  EXPECT_TRUE(c.IsRight());
  const TileF16& tile = kTilesF16[ChooseTileF16(520, 384, c.kernels().sms)];
  EXPECT_EQ(c.context().launches()[0].grid.x, TileBlocksF16(tile, 520, 384));
}

TEST(LinearF16, CarriesNanToItsRowAndColumnOnly) {
  LinearF16Case c({"nan", 20, 24, 40}, With(Activation::kRelu));
  c.x()[3 * 40 + 39].bits = 0x7e00;   // row 3
  c.weight()[17 * 40].bits = 0x7e00;  // column 17
  c.UploadX();
  c.UploadWeight();
  ASSERT_TRUE(c.Launch()({}).ok());
  const std::vector<float> y = c.Got();
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(std::isnan(y[i]), i / 24 == 3 || i % 24 == 17) << i;
  }
}

TEST(LinearF16, OverflowIsInfiniteAndNotWrapped) {
  LinearF16Options options;
  options.bias = false;
  options.scale = 1e6f;
  LinearF16Case c({"overflow", 1, 8, 8}, options);
  for (half& v : c.x()) v = ToHalves({1.0f})[0];
  for (half& v : c.weight()) v = ToHalves({1.0f})[0];
  c.UploadX();
  c.UploadWeight();
  ASSERT_TRUE(c.Launch()({}).ok());
  for (const float v : c.Got()) EXPECT_EQ(v, INFINITY);
}

TEST(LinearF16Twin, EqualsTheReferenceModelsNumbers) {
  for (const testing::OpCase& op_case : testing::ReadOpCases(testing::kOpGoldens, "linear_gelu")) {
    const auto& x = op_case.Input("x");
    const auto& weight = op_case.Input("weight");
    const std::vector<half> x16 = ToHalves(x.values), weight16 = ToHalves(weight.values);
    std::vector<float> y(op_case.output.values.size());
    LinearF16Params p = {x16.data(), weight16.data(), x.shape[0], weight.shape[0], x.shape[1], {}};
    p.epilogue.bias = op_case.Input("bias").values.data();
    p.epilogue.y_fp32 = y.data();
    p.epilogue.activation = Activation::kGelu;
    ASSERT_TRUE(CheckLinearF16(p).ok());
    LinearF16Cpu(p);
    // The operands were rounded to fp16, the reference's were not.
    EXPECT_TRUE(testing::IsNearRelL2(y, op_case.output.values, 1e-3, op_case.output.shape));
  }
}

TEST(LinearF16, RefusesEachBrokenPrecondition) {
  LinearF16Case c({"refused", 2, 3, 4});
  const auto message = [&](auto change) {
    LinearF16Params p = c.Params();
    change(p);
    const Status status = LinearF16(*c.context(), c.kernels(), p);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = LinearF16Params;
  RowStats stats;
  float sums;
  const auto norm = [&](P& p) {
    p.epilogue.norm_stats = &stats;
    p.epilogue.norm_sums = &sums;
    p.epilogue.norm_columns = p.k;
    p.epilogue.norm_groups = 1;
  };
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "LinearF16: x is null");
  EXPECT_EQ(message([](P& p) { p.weight = nullptr; }), "LinearF16: weight is null");
  EXPECT_EQ(message([](P& p) { p.epilogue.y = nullptr; }),
            "LinearF16: neither of y and y_fp32 given");
  EXPECT_EQ(message([&](P& p) { p.epilogue.y_fp32 = &sums; }),
            "LinearF16: both of y and y_fp32 given");
  EXPECT_EQ(message([](P& p) { p.m = 0; }), "LinearF16: m 0 not in 1..1073741824");
  EXPECT_EQ(message([](P& p) { p.n = -1; }), "LinearF16: n -1 not in 1..1073741824");
  EXPECT_EQ(message([](P& p) { p.k = INT64_MAX; }),
            "LinearF16: k 9223372036854775807 not in 1..1073741824");
  EXPECT_EQ(message([](P& p) { p.m = p.n = 1 << 30; }),
            "LinearF16: y of 1073741824 x 1073741824 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.epilogue.y = const_cast<half*>(p.x); }), "LinearF16: y is x");
  EXPECT_EQ(message([](P& p) { p.epilogue.activation = static_cast<Activation>(9); }),
            "LinearF16: activation 9 is unknown");
  EXPECT_EQ(message([](P& p) { p.epilogue.scale = NAN; }), "LinearF16: scale is not finite");
  EXPECT_EQ(message([&](P& p) { p.epilogue.norm_stats = &stats; }),
            "LinearF16: one of norm_stats and norm_sums is null");
  EXPECT_EQ(message([&](P& p) { norm(p), p.epilogue.norm_columns = 5; }),
            "LinearF16: norm_columns 5 is not k 4");
  EXPECT_EQ(message([&](P& p) { norm(p), p.epilogue.norm_groups = 2; }),
            "LinearF16: norm_groups 2 is neither 1 nor 1");
  EXPECT_EQ(message([&](P& p) { norm(p), p.epilogue.norm_epsilon = 0; }),
            "LinearF16: norm_epsilon 0.000000 is not positive");
  EXPECT_EQ(LinearF16WithTile(*c.context(), c.kernels(), c.Params(), k64x64).message(),
            "LinearF16: operands do not move by 16 bytes");
  EXPECT_TRUE(c.context().launches().empty());
}

TEST(LinearF16, CostCountsOperandsOnce) {
  LinearF16Options options;
  options.residual = true;
  LinearF16Case c({"cost", 2, 3, 4}, options);
  const LaunchCost cost = LinearF16Cost(c.Params());
  EXPECT_EQ(cost.tensor_flops, 2u * 2 * 3 * 4);
  EXPECT_EQ(cost.flops, (2u + 1) * 2 * 3);
  EXPECT_EQ(cost.bytes, 2u * (2 * 4 + 3 * 4 + 2 * 3 + 2 * 3) + 4 * 3);
}

}  // namespace
}  // namespace mk
