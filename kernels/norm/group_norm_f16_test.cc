#include "kernels/norm/group_norm_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/norm/group_norm_f16_kernels_emulated.h"
#include "kernels/norm/group_norm_f16_kernels_images.h"
#include "kernels/norm/group_norm_f16_shapes.h"
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

struct GroupNorm {
  using Shape = GroupNormF16Shape;
  using Params = GroupNormF16Params;
  using Kernels = GroupNormF16Kernels;
  static const DeviceModule& Module(OpContext& context) {
    return context.Module(mk_emulated_group_norm_f16_kernels, mk_images_group_norm_f16_kernels);
  }
  static Status Run(Context& context, const Kernels& kernels, const Params& params) {
    return GroupNormF16(context, kernels, params);
  }
  static void Cpu(const Params& params) { GroupNormF16Cpu(params); }
  static void SetRest(const Shape& shape, Params* p) { p->groups = shape.groups; }
};
using Problem = testing::ChannelFirstCase<GroupNorm>;

// One of each way through the code.
constexpr GroupNormF16Shape kWays[] = {
    {"warp", 2, 6, 24, 3},       {"warp_any", 2, 6, 5, 3},  {"block", 1, 8, 1032, 4},
    {"block_any", 2, 3, 683, 1}, {"slices", 1, 4, 8200, 2}, {"slices_any", 2, 3, 5467, 1},
};

TEST(GroupNormF16, EqualsTheTwinUnderEverySchedule) {
  int variant = 0;
  for (const GroupNormF16Shape& shape : kGroupNormF16RaggedShapes) {
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
    EXPECT_EQ(context.scratch_used_bytes(), 0u);
    EXPECT_EQ(context.scratch_peak_bytes(),
              static_cast<uint64_t>(GroupNormF16Scratch(problem.MakeParams())));
  }
}

TEST(GroupNormF16, EqualsTheTwinWithEachFusedPart) {
  testing::ExpectTheTwinsWithEachFusedPart<GroupNorm>(kWays);
}

TEST(GroupNormF16, EqualsTheTwinOnModelShapes) {
  testing::ExpectTheTwins<GroupNorm>(kGroupNormF16ModelShapes);
}

TEST(GroupNormF16, LetsTheSumBeXAndTheResultTheResidual) {
  testing::ExpectTheTwinsWhereTheSumIsXAndTheResultTheResidual<GroupNorm>(kWays);
}

TEST(GroupNormF16, KeepsPrecisionFarFromZero) {
  // 32 +- 0.02: a handful of neighbouring halves, of deviation about 0.01, so a variance from mean
  // squares in fp32 (1024 in 2^-13) would have no right digit. The mean is off by up to an ulp or
  // two of 32, 2^-18, of which the deviation makes 4e-4, and the weight up to half more.
  for (const GroupNormF16Shape& shape : kWays) {
    OpContext context;
    Problem problem(context, shape, {}, 31.98f, 32.02f);
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    problem.ExpectTheTwins(6e-4);
  }
}

TEST(GroupNormF16, TheTwinIsTheFormula) {
  // By hand: 1, 3 have mean 2 and variance 1; 1, 3, 5, 7 mean 4 and variance 5.
  std::vector<half> x = ToHalves({1, 3, 5, 7}), y(4);
  const std::vector<float> weight = {2, 4}, bias = {0.5f, -1};
  GroupNormF16Params p = {x.data(), nullptr, nullptr, weight.data(),    bias.data(), y.data(), 1, 2,
                          2,        2,       0,       Activation::kNone};
  GroupNormF16Cpu(p);
  EXPECT_EQ(ToFloats(y), (std::vector<float>{-1.5f, 2.5f, -5, 3}));
  p.groups = 1;
  GroupNormF16Cpu(p);
  EXPECT_NEAR(ToFloats(y)[1], -1 / std::sqrt(5.0) * 2 + 0.5, 1e-3);
  EXPECT_NEAR(ToFloats(y)[3], 3 / std::sqrt(5.0) * 4 - 1, 4e-3);
  p.images = 2;  // of one channel
  p.channels = 1;
  GroupNormF16Cpu(p);
  EXPECT_EQ(ToFloats(y), (std::vector<float>{-1.5f, 2.5f, -1.5f, 2.5f}));
}

TEST(GroupNormF16, CarriesNanToItsGroupOnly) {
  for (const GroupNormF16Shape& shape : kWays) {
    OpContext context;
    Problem problem(context, shape);
    const size_t row =
        problem.count_ / static_cast<size_t>(shape.images * shape.groups);  // elements
    problem.x_[2 * row - 1] = ToHalves({NAN})[0];                           // of the second group
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    const std::vector<float> y = problem.Result();
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isnan(y[i]), i / row == 1) << i;
  }
}

TEST(GroupNormF16, NeedsEveryBarrier) {
  MK_ON_EMULATOR_ALONE();
  for (const auto& [shape, barriers] :
       {std::pair<GroupNormF16Shape, size_t>{kWays[2], 2}, {{"slices", 1, 2, 8200, 1}, 4}}) {
    OpContext context;
    Problem problem(context, shape);
    const std::vector<emu::Mutant> mutants =
        emu::MutateSyncs(problem.Launch(), [&] { return problem.Outputs(); });
    EXPECT_EQ(mutants.size(), barriers) << shape.name;
    EXPECT_EQ(testing::Survivors(mutants), std::vector<std::string>()) << shape.name;
  }
}

TEST(GroupNormF16, MovesWhatItSays) {
  MK_ON_EMULATOR_ALONE();
  for (const GroupNormF16Shape shape :
       {GroupNormF16Shape{"warp", 1, 64, 128, 8}, {"block", 1, 8, 2048, 2}}) {
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

TEST(GroupNormF16, MovesWhatItSaysInTwoLaunches) {
  MK_ON_EMULATOR_ALONE();
  for (const auto& [sum, first, second] :
       {std::tuple{Sum::kNoResidual, 2u, 4u}, {Sum::kUnwanted, 4u, 6u}, {Sum::kWanted, 6u, 4u}}) {
    OpContext context;
    Problem problem(context, {"slices", 2, 2, 16384, 1}, {sum});
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    ASSERT_EQ(context.launches().size(), 2u);
    const testing::OpLaunch& statistics = context.launches()[0];
    const testing::OpLaunch& apply = context.launches()[1];
    const uint64_t n = problem.count_;
    const uint64_t slices = 4;  // of each of 2 rows
    EXPECT_EQ(statistics.report.counts.global_bytes(), first * n + 2 * slices * 8);
    EXPECT_EQ(statistics.cost.bytes, statistics.report.counts.global_bytes());
    EXPECT_EQ(apply.report.counts.global_bytes(),
              second * n + 8 * (n / 8) + 2 * slices * slices * 16);
    EXPECT_EQ(apply.cost.bytes, second * n + 8u * 2 + 2 * slices * 8);
    EXPECT_EQ(statistics.report.counts.wasted_sectors(), 0u);
    EXPECT_EQ(apply.report.counts.bank_conflicts(), 0u);
    EXPECT_EQ(statistics.cost.bytes + apply.cost.bytes,
              GroupNormF16Cost(problem.MakeParams()).bytes);
  }
}

TEST(GroupNormF16, TakesWhatIsNotAlignedOneByOne) {
  OpContext context;
  Problem problem(context, {"misaligned", 1, 3, 16, 1});
  GroupNormF16Params params = problem.MakeParams();
  params.x += 1;
  params.channels = 2;
  ASSERT_TRUE(GroupNormF16(*context, problem.kernels_, params).ok()) << context.error();
  EXPECT_EQ(context.launches()[0].kernel, "mk_group_norm_f16_warp_any");
}

TEST(GroupNormF16, RefusesEachBrokenPrecondition) {
  OpContext context;
  Problem problem(context, {"refused", 1, 8, 4, 2}, {Sum::kWanted});
  const auto message = [&](auto change) {
    GroupNormF16Params params = problem.MakeParams();
    change(params);
    const Status status = GroupNormF16(*context, problem.kernels_, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = GroupNormF16Params;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "GroupNormF16: x is null");
  EXPECT_EQ(message([](P& p) { p.weight = nullptr; }), "GroupNormF16: weight is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "GroupNormF16: y is null");
  EXPECT_EQ(message([](P& p) { p.residual = nullptr; }),
            "GroupNormF16: a sum, but residual is null");
  EXPECT_EQ(message([](P& p) { p.y = p.sum; }), "GroupNormF16: y is sum");
  EXPECT_EQ(message([](P& p) { p.images = 0; }), "GroupNormF16: images 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.channels = -1; }), "GroupNormF16: channels -1 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.positions = 0; }), "GroupNormF16: positions 0 not in 1..67108864");
  EXPECT_EQ(message([](P& p) { p.groups = 9; }), "GroupNormF16: groups 9 not in 1..8");
  EXPECT_EQ(message([](P& p) { p.groups = 3; }), "GroupNormF16: groups 3 do not divide channels 8");
  EXPECT_EQ(message([](P& p) { p.images = p.channels = p.groups = 1 << 20; }),
            "GroupNormF16: images * groups 1099511627776 not in 1..2147483647");
  EXPECT_EQ(message([](P& p) { p.positions = 1 << 25; }),
            "GroupNormF16: elements of a group 134217728 not in 1..67108864");
  EXPECT_EQ(message([](P& p) { p.images = 1 << 14, p.positions = 1 << 24; }),
            "GroupNormF16: x of 32768 x 67108864 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.epsilon = -1; }),
            "GroupNormF16: epsilon -1.000000 is not finite and >= 0");
  EXPECT_EQ(message([](P& p) { p.epsilon = INFINITY; }),
            "GroupNormF16: epsilon inf is not finite and >= 0");
  EXPECT_EQ(message([](P& p) { p.activation = static_cast<Activation>(9); }),
            "GroupNormF16: activation 9 is unknown");
}

}  // namespace
}  // namespace mk
