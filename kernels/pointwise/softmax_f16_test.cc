#include "kernels/pointwise/softmax_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/pointwise/softmax_f16_kernels_emulated.h"
#include "kernels/pointwise/softmax_f16_kernels_images.h"
#include "kernels/pointwise/softmax_f16_shapes.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/op_context.h"

namespace mk {
namespace {

using device::half;
using emu::DeviceArray;
using testing::IsNear;
using testing::OpContext;
using testing::ToFloats;
using testing::ToHalves;

struct Problem {
  Problem(OpContext& context, const SoftmaxF16Shape& shape, float scale = 0.5f)
      : context(context),
        kernels(*SoftmaxF16Kernels::Load(
            context.host(),
            context.Module(mk_emulated_softmax_f16_kernels, mk_images_softmax_f16_kernels))),
        shape(shape),
        scale(scale),
        x(ToHalves(testing::Generate("x", 1, shape.rows * shape.columns, -20, 20))),
        x_device(&context.memory(), "x", x),
        y_device(&context.memory(), "y", x.size()) {}

  SoftmaxF16Params Params() {
    return {x_device.device(), y_device.device(), shape.rows, shape.columns, scale};
  }
  Status Run() { return SoftmaxF16(*context, kernels, Params()); }
  std::vector<half> Twins() const {
    std::vector<half> y(x.size());
    SoftmaxF16Cpu({x.data(), y.data(), shape.rows, shape.columns, scale});
    return y;
  }
  // An ulp of fp16 where the two round apart; subnormal ones are 2^-24 apart.
  ::testing::AssertionResult IsTheTwins(const DeviceArray<half>& got) {
    const std::vector<float> want = ToFloats(Twins());
    return IsNear(ToFloats(got.Host()), {want.begin(), want.end()}, 0x1p-24, 0x1p-10,
                  {shape.rows, shape.columns});
  }

  OpContext& context;
  const SoftmaxF16Kernels kernels;
  const SoftmaxF16Shape shape;
  const float scale;
  std::vector<half> x;
  DeviceArray<half> x_device, y_device;
};

TEST(SoftmaxF16, EqualsTheTwinUnderEverySchedule) {
  for (const SoftmaxF16Shape& shape : kSoftmaxF16RaggedShapes) {
    OpContext context;
    Problem problem(context, shape);
    const emu::LaunchFunction launch = context.LaunchFunction([&] {
      problem.y_device.Reset();
      return problem.Run();
    });
    const emu::SweepResult sweep = emu::Sweep(launch, testing::BytesOf(problem.y_device));
    ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
    EXPECT_TRUE(problem.IsTheTwins(problem.y_device)) << shape.name;
  }
}

TEST(SoftmaxF16, EqualsTheTwinInPlaceOnModelShapes) {
  for (const SoftmaxF16Shape& shape : kSoftmaxF16ModelShapes) {
    OpContext context;
    Problem problem(context, shape, -1.0f);
    SoftmaxF16Params params = problem.Params();
    params.y = problem.x_device.device();
    ASSERT_TRUE(SoftmaxF16(*context, problem.kernels, params).ok()) << context.error();
    EXPECT_TRUE(problem.IsTheTwins(problem.x_device)) << shape.name;
  }
}

TEST(SoftmaxF16, TheTwinAddsUpToOne) {
  OpContext context;
  Problem problem(context, {"sum", 3, 50});
  const std::vector<float> y = ToFloats(problem.Twins());
  for (int row = 0; row < 3; ++row) {
    double sum = 0;
    for (int c = 0; c < 50; ++c) sum += y[static_cast<size_t>(row * 50 + c)];
    EXPECT_NEAR(sum, 1, 1e-3);
  }
}

TEST(SoftmaxF16, CarriesWhatIsNoNumberToItsRowOnly) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    OpContext context;
    Problem problem(context, {"bad", 3, 24});
    problem.x[24 + 5] = ToHalves({bad})[0];  // row 1
    problem.x_device.Set(problem.x);
    ASSERT_TRUE(problem.Run().ok()) << context.error();
    const std::vector<float> y = ToFloats(problem.y_device.Host());
    for (size_t i = 0; i < y.size(); ++i) {
      // A single -infinity only takes no part.
      EXPECT_EQ(std::isnan(y[i]), bad != -INFINITY && i / 24 == 1) << i << " of " << bad;
    }
    EXPECT_EQ(y[24 + 5] == 0.0f, bad == -INFINITY);
  }
}

TEST(SoftmaxF16, MovesWhatItSays) {
  MK_ON_EMULATOR_ALONE();
  OpContext context;
  Problem problem(context, {"traffic", 16, 1024});
  ASSERT_TRUE(problem.Run().ok()) << context.error();
  const testing::OpLaunch& launch = context.launches()[0];
  EXPECT_EQ(launch.report.counts.global_bytes(), 4u * 16 * 1024);
  EXPECT_EQ(launch.report.counts.wasted_sectors(), 0u);
  EXPECT_EQ(launch.cost.bytes, 4u * 16 * 1024);
  EXPECT_EQ(launch.cost.flops, 5u * 16 * 1024);
}

TEST(SoftmaxF16, RefusesEachBrokenPrecondition) {
  OpContext context;
  Problem problem(context, {"refused", 2, 8});
  const auto message = [&](auto change) {
    SoftmaxF16Params params = problem.Params();
    change(params);
    const Status status = SoftmaxF16(*context, problem.kernels, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = SoftmaxF16Params;
  EXPECT_EQ(message([](P& p) { p.x = nullptr; }), "SoftmaxF16: x is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "SoftmaxF16: y is null");
  EXPECT_EQ(message([](P& p) { p.rows = 0; }), "SoftmaxF16: rows 0 not in 1..2147483647");
  EXPECT_EQ(message([](P& p) { p.columns = 1 << 21; }),
            "SoftmaxF16: columns 2097152 not in 1..1048576");
  EXPECT_EQ(message([](P& p) { p.rows = 1 << 30, p.columns = 1 << 20; }),
            "SoftmaxF16: x of 1073741824 x 1048576 elements > 1099511627776");
  EXPECT_EQ(message([](P& p) { p.scale = INFINITY; }), "SoftmaxF16: scale inf is not finite");
}

}  // namespace
}  // namespace mk
