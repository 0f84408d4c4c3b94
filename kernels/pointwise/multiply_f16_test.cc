#include "kernels/pointwise/multiply_f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/pointwise/multiply_f16_kernels_emulated.h"
#include "kernels/pointwise/multiply_f16_kernels_images.h"
#include "kernels/pointwise/multiply_f16_shapes.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/op_context.h"

namespace mk {
namespace {

using device::half;
using emu::DeviceArray;
using testing::Generate;
using testing::OpContext;
using testing::ToFloats;
using testing::ToHalves;

struct Problem {
  Problem(OpContext& context, int64_t count, int64_t offset = 0)
      : context(context),
        kernels(*MultiplyF16Kernels::Load(
            context.host(),
            context.Module(mk_emulated_multiply_f16_kernels, mk_images_multiply_f16_kernels))),
        count(count),
        offset(offset),
        a(ToHalves(Generate("a", 1, count + offset, -300, 300))),
        b(ToHalves(Generate("b", 1, count + offset, -300, 300))),
        a_device(&context.memory(), "a", a),
        b_device(&context.memory(), "b", b),
        y_device(&context.memory(), "y", static_cast<uint64_t>(count + offset)) {}

  MultiplyF16Params Params() {
    return {a_device.device() + offset, b_device.device() + offset, y_device.device() + offset,
            count};
  }
  Status Run() { return MultiplyF16(*context, kernels, Params()); }
  bool IsTheTwins() {
    std::vector<half> want(a.size());
    MultiplyF16Cpu({a.data() + offset, b.data() + offset, want.data() + offset, count});
    const std::vector<half> got = y_device.Host();
    return std::memcmp(got.data() + offset, want.data() + offset,
                       static_cast<size_t>(count) * sizeof(half)) == 0;
  }

  OpContext& context;
  const MultiplyF16Kernels kernels;
  const int64_t count, offset;
  std::vector<half> a, b;
  DeviceArray<half> a_device, b_device, y_device;
};

TEST(MultiplyF16, IsTheTwinsToTheBitUnderEverySchedule) {
  for (const int64_t offset : {0, 1}) {
    for (const MultiplyF16Shape& shape : kMultiplyF16RaggedShapes) {
      OpContext context;
      Problem problem(context, shape.count, offset);
      const emu::SweepResult sweep = emu::Sweep(context.LaunchFunction([&] {
        problem.y_device.Reset();
        return problem.Run();
      }),
                                                nullptr);
      ASSERT_TRUE(sweep.ok) << shape.name << ": " << sweep.text;
      EXPECT_TRUE(problem.IsTheTwins()) << shape.name;
      EXPECT_EQ(context.launches()[0].kernel,
                offset == 0 ? "mk_multiply_f16_vectors" : "mk_multiply_f16_any");
    }
  }
}

TEST(MultiplyF16, RunsInPlaceAndOnModelShapes) {
  for (const MultiplyF16Shape& shape : kMultiplyF16ModelShapes) {
    OpContext context;
    Problem problem(context, shape.count);
    MultiplyF16Params params = problem.Params();
    params.y = problem.a_device.device();
    ASSERT_TRUE(MultiplyF16(*context, problem.kernels, params).ok()) << context.error();
    problem.y_device.Set(problem.a_device.Host());
    EXPECT_TRUE(problem.IsTheTwins()) << shape.name;
  }
}

TEST(MultiplyF16, CarriesNanAndInfinityToTheirElementOnly) {
  OpContext context;
  Problem problem(context, 20);
  problem.a[3] = ToHalves({NAN})[0];
  problem.a[18] = ToHalves({INFINITY})[0];
  problem.a_device.Set(problem.a);
  ASSERT_TRUE(problem.Run().ok()) << context.error();
  const std::vector<float> y = ToFloats(problem.y_device.Host());
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(std::isnan(y[i]), i == 3);
    EXPECT_EQ(std::isinf(y[i]) && i == 18, i == 18);
  }
}

TEST(MultiplyF16, MovesWhatItSays) {
  MK_ON_EMULATOR_ALONE();
  OpContext context;
  Problem problem(context, 4096);
  ASSERT_TRUE(problem.Run().ok()) << context.error();
  const testing::OpLaunch& launch = context.launches()[0];
  EXPECT_EQ(launch.report.counts.global_bytes(), 6u * 4096);
  EXPECT_EQ(launch.report.counts.wasted_sectors(), 0u);
  EXPECT_EQ(launch.cost.bytes, 6u * 4096);
  EXPECT_EQ(launch.cost.flops, 4096u);
}

TEST(MultiplyF16, RefusesEachBrokenPrecondition) {
  OpContext context;
  Problem problem(context, 8);
  const auto message = [&](auto change) {
    MultiplyF16Params params = problem.Params();
    change(params);
    const Status status = MultiplyF16(*context, problem.kernels, params);
    EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
    return status.message();
  };
  using P = MultiplyF16Params;
  EXPECT_EQ(message([](P& p) { p.a = nullptr; }), "MultiplyF16: a is null");
  EXPECT_EQ(message([](P& p) { p.b = nullptr; }), "MultiplyF16: b is null");
  EXPECT_EQ(message([](P& p) { p.y = nullptr; }), "MultiplyF16: y is null");
  EXPECT_EQ(message([](P& p) { p.count = 0; }), "MultiplyF16: count 0 not in 1..274877906944");
}

}  // namespace
}  // namespace mk
