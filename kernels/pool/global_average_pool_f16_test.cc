#include "kernels/pool/global_average_pool_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/pool/global_average_pool_f16_kernels_emulated.h"
#include "kernels/pool/global_average_pool_f16_kernels_images.h"
#include "kernels/pool/global_average_pool_f16_shapes.h"
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
  Problem(OpContext& context, const GlobalAveragePoolF16Shape& shape, bool normed)
      : context(context),
        kernels(*GlobalAveragePoolF16Kernels::Load(
            context.host(), context.Module(mk_emulated_global_average_pool_f16_kernels,
                                           mk_images_global_average_pool_f16_kernels))),
        shape(shape),
        normed(normed),
        x(ToHalves(Generate("x", 1, shape.rows * shape.channels, -1, 2))),
        weight(Generate("weight", 1, shape.channels, 0.5f, 1.5f)),
        bias(Generate("bias", 1, shape.channels, -1, 1)),
        x_device(&context.memory(), "x", x),
        weight_device(&context.memory(), "weight", weight),
        bias_device(&context.memory(), "bias", bias),
        y_device(&context.memory(), "y", static_cast<uint64_t>(shape.channels)) {}

  GlobalAveragePoolF16Params Params() {
    return {x_device.device(),
            normed ? weight_device.device() : nullptr,
            normed ? bias_device.device() : nullptr,
            y_device.device(),
            shape.rows,
            shape.channels,
            1e-5f};
  }
  Status Run() { return GlobalAveragePoolF16(*context, kernels, Params()); }
  emu::LaunchFunction Launch() {
    return context.LaunchFunction([this] {
      y_device.Reset();
      return Run();
    });
  }
  // An ulp of fp16 where the two round apart; the absolute term is fp32's, on a sum that cancels.
  ::testing::AssertionResult IsTheTwins() {
    std::vector<half> want(static_cast<size_t>(shape.channels));
    GlobalAveragePoolF16Cpu({x.data(), normed ? weight.data() : nullptr,
                             normed ? bias.data() : nullptr, want.data(), shape.rows,
                             shape.channels, 1e-5f});
    const std::vector<float> floats = ToFloats(want);
    return IsNear(ToFloats(y_device.Host()), {floats.begin(), floats.end()}, 3e-6, 0x1p-10);
  }

  OpContext& context;
  const GlobalAveragePoolF16Kernels kernels;
  const GlobalAveragePoolF16Shape shape;
  const bool normed;
  std::vector<half> x;
  const std::vector<float> weight, bias;
  DeviceArray<half> x_device;
  DeviceArray<float> weight_device, bias_device;
  DeviceArray<half> y_device;
};

TEST(GlobalAveragePoolF16, EqualsTheTwinUnderEverySchedule) {
  for (const bool normed : {false, true}) {
    for (const GlobalAveragePoolF16Shape& shape : kGlobalAveragePoolF16RaggedShapes) {
      OpContext context;
      Problem problem(context, shape, normed);
      const emu::SweepResult sweep =
          emu::Sweep(problem.Launch(), testing::BytesOf(problem.y_device));
      ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
      EXPECT_TRUE(problem.IsTheTwins()) << shape.name;
      EXPECT_EQ(context.scratch_used_bytes(), 0u);
      EXPECT_EQ(context.launches().size() % 2, shape.rows > 64 ? 0u : 1u);
    }
  }
}

TEST(GlobalAveragePoolF16, EqualsTheTwinOnModelShapes) {
  for (const GlobalAveragePoolF16Shape& shape : kGlobalAveragePoolF16ModelShapes) {
    OpContext context;
    Problem problem(context, shape, true);
    ASSERT_TRUE(problem.Run().ok()) << shape.name << ": " << context.error();
    EXPECT_TRUE(problem.IsTheTwins()) << shape.name;
  }
}

TEST(GlobalAveragePoolF16, NeedsEveryBarrier) {
  MK_ON_EMULATOR_ALONE();
  OpContext context;
  Problem problem(context, {"two_groups", 70, 66}, true);
  const std::vector<emu::Mutant> mutants =
      emu::MutateSyncs(problem.Launch(), testing::BytesOf(problem.y_device));
  EXPECT_EQ(mutants.size(), 2u);
  EXPECT_EQ(testing::Survivors(mutants), std::vector<std::string>());
}

TEST(GlobalAveragePoolF16, CarriesNanWhereItGoes) {
  for (const bool normed : {false, true}) {
    OpContext context;
    Problem problem(context, {"nan", 70, 6}, normed);
    problem.x[68 * 6 + 4] = ToHalves({NAN})[0];
    problem.x_device.Set(problem.x);
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    const std::vector<float> y = ToFloats(problem.y_device.Host());
    // A row's norm spreads it over the channels.
    for (size_t c = 0; c < y.size(); ++c) EXPECT_EQ(std::isnan(y[c]), normed || c == 4);
  }
}

TEST(GlobalAveragePoolF16, MovesWhatItSays) {
  MK_ON_EMULATOR_ALONE();
  OpContext context;
  Problem problem(context, {"traffic", 128, 256}, false);
  ASSERT_TRUE(problem.Run().ok()) << context.error();
  ASSERT_EQ(context.launches().size(), 2u);
  uint64_t moved = 0;
  uint64_t said = 0;
  for (const testing::OpLaunch& launch : context.launches()) {
    EXPECT_EQ(launch.report.counts.global_bytes(), launch.cost.bytes) << launch.kernel;
    EXPECT_EQ(launch.report.counts.wasted_sectors(), 0u);
    moved += launch.report.counts.global_bytes();
    said += launch.cost.bytes;
  }
  EXPECT_EQ(moved, 2u * 256 * 129 + 8u * 256 * 2);
  EXPECT_EQ(said, GlobalAveragePoolF16Cost(problem.Params()).bytes);
  EXPECT_EQ(context.scratch_peak_bytes(),
            static_cast<uint64_t>(GlobalAveragePoolF16Scratch(128, 256)));
}

TEST(GlobalAveragePoolF16, ReadsNormedRowsThrice) {
  MK_ON_EMULATOR_ALONE();
  OpContext context;
  Problem problem(context, {"traffic", 64, 64}, true);
  ASSERT_TRUE(problem.Run().ok()) << context.error();
  EXPECT_EQ(context.launches()[0].report.counts.global_bytes(),
            2u * 64 * (3 * 64 + 1) + 2u * 4 * 64);
}

TEST(GlobalAveragePoolF16, RefusesEachBrokenPrecondition) {
  OpContext context;
  Problem problem(context, {"refused", 2, 8}, true);
  const auto message = [&](auto change) {
    GlobalAveragePoolF16Params params = problem.Params();
    change(params);
    const Status status = GlobalAveragePoolF16(*context, problem.kernels, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = GlobalAveragePoolF16Params;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "GlobalAveragePoolF16: x is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "GlobalAveragePoolF16: y is null");
  EXPECT_EQ(message([](P& p) { p.bias = nullptr; }),
            "GlobalAveragePoolF16: a weight, but bias is null");
  EXPECT_EQ(message([](P& p) { p.weight = nullptr; }),
            "GlobalAveragePoolF16: a bias, but weight is null");
  EXPECT_EQ(message([](P& p) { p.rows = 0; }), "GlobalAveragePoolF16: rows 0 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.channels = -1; }),
            "GlobalAveragePoolF16: channels -1 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.epsilon = NAN; }),
            "GlobalAveragePoolF16: epsilon nan is not finite and >= 0");
  EXPECT_EQ(message([](P& p) { p.y = const_cast<half*>(p.x); }), "GlobalAveragePoolF16: y is x");
}

}  // namespace
}  // namespace mk
