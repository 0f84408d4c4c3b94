#include "kernels/norm/channel_norm_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "kernels/norm/channel_norm_f16_kernels_emulated.h"
#include "kernels/norm/channel_norm_f16_kernels_images.h"
#include "kernels/norm/channel_norm_f16_shapes.h"
#include "kernels/norm/testing/channel_first_case.h"
#include "kernels/testing/op_context.h"

namespace mk {
namespace {

using device::half;
using testing::Fused;
using testing::OpContext;
using testing::Sum;
using testing::ToFloats;
using testing::ToHalves;

struct ChannelNorm {
  using Shape = ChannelNormF16Shape;
  using Params = ChannelNormF16Params;
  using Kernels = ChannelNormF16Kernels;
  static const DeviceModule& Module(OpContext& context) {
    return context.Module(mk_emulated_channel_norm_f16_kernels, mk_images_channel_norm_f16_kernels);
  }
  static Status Run(Context& context, const Kernels& kernels, const Params& params) {
    return ChannelNormF16(context, kernels, params);
  }
  static void Cpu(const Params& params) { ChannelNormF16Cpu(params); }
  static void SetRest(const Shape&, Params*) {}
};
using Problem = testing::ChannelFirstCase<ChannelNorm>;

// One of each way through the code.
constexpr ChannelNormF16Shape kWays[] = {
    {"any", 2, 19, 49}, {"pairs", 1, 40, 50}, {"tile16", 2, 130, 24}, {"tile64", 16, 5, 72}};

TEST(ChannelNormF16, EqualsTheTwinUnderEverySchedule) {
  int variant = 0;
  for (const ChannelNormF16Shape& shape : kChannelNormF16RaggedShapes) {
    // Each shape with one of these; all of them come to each way through the code.
    const Fused all[] = {{},
                         {Sum::kWanted, Activation::kGelu},
                         {Sum::kUnwanted, Activation::kSilu, true},
                         {Sum::kNoResidual, Activation::kRelu, true, false}};
    OpContext context;
    Problem problem(context, shape, all[variant++ % 4]);
    const emu::SweepResult sweep = emu::Sweep(problem.Launch(), [&] { return problem.Outputs(); });
    ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
    problem.ExpectTheTwins();
    const std::string name = std::string(shape.name).substr(0, std::string(shape.name).find('_'));
    if (name == "one") continue;
    EXPECT_EQ(context.launches()[0].kernel, "mk_channel_norm_f16_" + name);
  }
}

TEST(ChannelNormF16, EqualsTheTwinWithEachFusedPart) {
  testing::ExpectTheTwinsWithEachFusedPart<ChannelNorm>(kWays);
}

TEST(ChannelNormF16, EqualsTheTwinOnModelShapes) {
  testing::ExpectTheTwins<ChannelNorm>(kChannelNormF16ModelShapes);
}

TEST(ChannelNormF16, LetsTheSumBeXAndTheResultTheResidual) {
  testing::ExpectTheTwinsWhereTheSumIsXAndTheResultTheResidual<ChannelNorm>(kWays);
}

TEST(ChannelNormF16, KeepsPrecisionFarFromZero) {
  // As in group_norm_f16_test.cc. The mean is off by up to an ulp of 32, 2^-18, of which a
  // deviation of 0.01 makes 4e-4, and the weight up to half more.
  for (const ChannelNormF16Shape& shape : kWays) {
    OpContext context;
    Problem problem(context, shape, {}, 31.98f, 32.02f);
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    problem.ExpectTheTwins(6e-4);
  }
}

TEST(ChannelNormF16, TheTwinIsTheFormula) {
  // By hand: positions 1, 3 and 2, 8 have means 2 and 5, variances 1 and 9.
  std::vector<half> x = ToHalves({1, 2, 3, 8}), y(4);
  const std::vector<float> weight = {2, 4}, bias = {0.5f, -1};
  const ChannelNormF16Params p = {
      x.data(), nullptr, nullptr, weight.data(),    bias.data(), y.data(), 1,
      2,        2,       0,       Activation::kNone};
  ChannelNormF16Cpu(p);
  EXPECT_EQ(ToFloats(y), (std::vector<float>{-1.5f, -1.5f, 3, 3}));
}

TEST(ChannelNormF16, CarriesNanToItsPositionOnly) {
  for (const ChannelNormF16Shape& shape : kWays) {
    OpContext context;
    Problem problem(context, shape);
    const auto positions = static_cast<size_t>(shape.positions);
    const auto image = static_cast<size_t>(shape.channels) * positions;
    const size_t at = (static_cast<size_t>(shape.images) - 1) * image +
                      (static_cast<size_t>(shape.channels) - 2) * positions + 19;
    problem.x_[at] = ToHalves({NAN})[0];
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    const std::vector<float> y = problem.Result();
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(std::isnan(y[i]), i / image == at / image && i % positions == 19) << i;
    }
  }
}

TEST(ChannelNormF16, NeedsEveryBarrier) {
  MK_ON_EMULATOR_ALONE();
  for (const ChannelNormF16Shape& shape : {kWays[1], kWays[2]}) {
    OpContext context;
    Problem problem(context, shape);
    const std::vector<emu::Mutant> mutants =
        emu::MutateSyncs(problem.Launch(), [&] { return problem.Outputs(); });
    EXPECT_EQ(mutants.size(), 2u) << shape.name;
    EXPECT_EQ(testing::Survivors(mutants), std::vector<std::string>()) << shape.name;
  }
}

TEST(ChannelNormF16, MovesWhatItSays) {
  MK_ON_EMULATOR_ALONE();
  for (const ChannelNormF16Shape shape :
       {ChannelNormF16Shape{"tile16", 1, 144, 32}, {"tile64", 2, 40, 1024}}) {
    for (const auto& [sum, bytes] :
         {std::pair{Sum::kNoResidual, 4u}, {Sum::kUnwanted, 6u}, {Sum::kWanted, 8u}}) {
      OpContext context;
      Problem problem(context, shape, {sum});
      ASSERT_TRUE(problem.Run().ok()) << context.error();
      ASSERT_EQ(context.launches().size(), 1u);
      const emu::Counts& counts = context.launches()[0].report.counts;
      const uint64_t n = problem.count_;
      EXPECT_EQ(counts.global_bytes(), bytes * n + 8 * (n / 8)) << shape.name;
      EXPECT_EQ(counts.wasted_sectors(), 0u);
      EXPECT_EQ(counts.bank_conflicts(), 0u);
      EXPECT_EQ(counts.footprint_bytes(), bytes * n + 8u * shape.channels);
      EXPECT_EQ(context.launches()[0].cost.bytes, bytes * n + 8u * shape.channels);
      EXPECT_EQ(context.launches()[0].cost.flops, 8 * n);
    }
  }
}

TEST(ChannelNormF16, TakesWhatIsNotAlignedOneByOne) {
  OpContext context;
  Problem problem(context, {"misaligned", 1, 3, 16});
  ChannelNormF16Params params = problem.MakeParams();
  params.channels = 2;
  const auto kernel = [&](int64_t offset) {
    context.ClearLaunches();
    params.x = problem.x_device_.device() + offset;
    EXPECT_TRUE(ChannelNormF16(*context, problem.kernels_, params).ok()) << context.error();
    return context.launches()[0].kernel;
  };
  EXPECT_EQ(kernel(1), "mk_channel_norm_f16_any");
  EXPECT_EQ(kernel(2), "mk_channel_norm_f16_pairs");
  EXPECT_EQ(kernel(8), "mk_channel_norm_f16_tile16");
}

TEST(ChannelNormF16, RefusesEachBrokenPrecondition) {
  OpContext context;
  Problem problem(context, {"refused", 1, 8, 4}, {Sum::kWanted});
  const auto message = [&](auto change) {
    ChannelNormF16Params params = problem.MakeParams();
    change(params);
    const Status status = ChannelNormF16(*context, problem.kernels_, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = ChannelNormF16Params;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "ChannelNormF16: x is null");
  EXPECT_EQ(message([](P& p) { p.weight = nullptr; }), "ChannelNormF16: weight is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "ChannelNormF16: y is null");
  EXPECT_EQ(message([](P& p) { p.residual = nullptr; }),
            "ChannelNormF16: a sum, but residual is null");
  EXPECT_EQ(message([](P& p) { p.y = p.sum; }), "ChannelNormF16: y is sum");
  EXPECT_EQ(message([](P& p) { p.images = 0; }), "ChannelNormF16: images 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.channels = 2049; }),
            "ChannelNormF16: channels 2049 not in 1..2048");
  EXPECT_EQ(message([](P& p) { p.positions = 0; }),
            "ChannelNormF16: positions 0 not in 1..67108864");
  EXPECT_EQ(message([](P& p) { p.images = 1 << 12, p.positions = 1 << 26; }),
            "ChannelNormF16: x of 4096 x 536870912 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.images = 1 << 12, p.channels = 1, p.positions = 1 << 26; }),
            "ChannelNormF16: tiles of 16 positions 17179869184 not in 1..2147483647");
  EXPECT_EQ(message([](P& p) { p.epsilon = -1; }),
            "ChannelNormF16: epsilon -1.000000 is not finite and >= 0");
  EXPECT_EQ(message([](P& p) { p.epsilon = INFINITY; }),
            "ChannelNormF16: epsilon inf is not finite and >= 0");
  EXPECT_EQ(message([](P& p) { p.activation = static_cast<Activation>(9); }),
            "ChannelNormF16: activation 9 is unknown");
}

}  // namespace
}  // namespace mk
