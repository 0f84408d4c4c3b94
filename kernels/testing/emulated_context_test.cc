#include "kernels/testing/emulated_context.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/testing/emulated_context_sample_emulated.h"
#include "kernels/testing/emulated_context_sample_params.h"

namespace mk::testing {
namespace {

using device::half;
using samples::ReverseParams;

class EmulatedContextTest : public ::testing::Test {
 protected:
  EmulatedContextTest()
      : x_(&context_.memory(), "x", ToHalves(Ascending())), y_(&context_.memory(), "y", 64) {
    x_.Freeze();
    const DeviceModule& module = context_.Module(mk_emulated_emulated_context_sample);
    mk_module* loaded = *context_.host().LoadModule(module);
    kernel_ = *context_.host().FindKernel<ReverseParams>(loaded, "mk_sample_reverse");
  }

  static std::vector<float> Ascending() {
    std::vector<float> values;
    for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>(i));
    return values;
  }

  Status Reverse(const half* x, half* y) {
    return context_->Launch(kernel_, {1}, {64}, 0, ReverseParams{x, y}, {256, 0, 0});
  }

  EmulatedContext context_;
  emu::DeviceArray<half> x_, y_;
  Kernel<ReverseParams> kernel_;
};

TEST_F(EmulatedContextTest, RunsAnOpAndKeepsItsReport) {
  ASSERT_EQ(context_->device(), DeviceKind::kEmulated);
  const Status status = Reverse(x_.device(), y_.device());
  ASSERT_TRUE(status.ok()) << context_.error();
  EXPECT_EQ(ToFloats(y_.Host())[5], 58.0f);
  ASSERT_EQ(context_.launches().size(), 1u);
  const EmulatedLaunch& launch = context_.launches()[0];
  EXPECT_EQ(launch.kernel, "mk_sample_reverse");
  EXPECT_EQ(launch.block.x, 64u);
  EXPECT_EQ(launch.cost.bytes, launch.report.counts.global_bytes());
}

TEST_F(EmulatedContextTest, SweepsAndMutatesWhatSeveralLaunchesDo) {
  const emu::LaunchFunction twice = context_.LaunchFunction([&]() -> Status {
    y_.Reset();
    MK_TRY_ASSIGN(half* const scratch, context_->Scratch<half>(64));
    MK_TRY(Reverse(x_.device(), scratch));
    return Reverse(scratch, y_.device());
  });
  const emu::SweepResult sweep = emu::Sweep(twice, BytesOf(y_));
  EXPECT_TRUE(sweep.ok) << sweep.text;
  EXPECT_EQ(sweep.runs, 8);
  EXPECT_EQ(sweep.first.counts.global_bytes(), 512u);
  EXPECT_EQ(sweep.first.counts.barriers, 2u);
  EXPECT_EQ(ToFloats(y_.Host()), Ascending());
  const std::vector<emu::Mutant> mutants = emu::MutateSyncs(twice, BytesOf(y_));
  EXPECT_EQ(mutants.size(), 1u);
  EXPECT_EQ(Survivors(mutants), std::vector<std::string>());
  EXPECT_EQ(context_.scratch_used_bytes(), 0u);
  EXPECT_EQ(context_.scratch_peak_bytes(), 128u);
}

TEST_F(EmulatedContextTest, AFindingFailsTheLaunchAndTheOp) {
  const Status status = Reverse(y_.device(), y_.device());  // nobody has written y
  EXPECT_EQ(status.code(), MK_INTERNAL);
  EXPECT_NE(context_.error().find("uninitialised"), std::string::npos) << context_.error();
  EXPECT_EQ(Reverse(x_.device(), const_cast<half*>(x_.device())).code(), MK_INTERNAL);
  EXPECT_TRUE(context_.MergedReport().Has(emu::FindingKind::kReadOnlyWrite));
}

TEST_F(EmulatedContextTest, AnOpThatRefusesIsReportedToo) {
  const auto refuse =
      context_.LaunchFunction([] { return InvalidArgument("Foo: n 0 not in 1..4"); });
  const emu::Report report = refuse({});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].what, "Foo: n 0 not in 1..4");
}

TEST_F(EmulatedContextTest, NamesAKernelThatIsNotThere) {
  const DeviceModule& module = context_.Module(mk_emulated_emulated_context_sample);
  mk_module* loaded = *context_.host().LoadModule(module);
  EXPECT_EQ(context_.host().FindKernel<ReverseParams>(loaded, "mk_nothing").status().code(),
            MK_NOT_FOUND);
  EXPECT_NE(context_.error().find("mk_nothing"), std::string::npos);
}

TEST_F(EmulatedContextTest, RefusesAGridThatNoGpuTakes) {
  const ReverseParams params = {x_.device(), y_.device()};
  EXPECT_EQ(context_->Launch(kernel_, {1, 65536}, {64}, 0, params, {}).code(), MK_INTERNAL);
  EXPECT_EQ(context_->Launch(kernel_, {0}, {64}, 0, params, {}).code(), MK_INTERNAL);
}

TEST_F(EmulatedContextTest, WeightsAreZeroAndTakeUploads) {
  auto* const weights = static_cast<half*>(*context_.host().AllocateWeights(128));
  ASSERT_TRUE(Reverse(weights, y_.device()).ok());
  EXPECT_EQ(ToFloats(y_.Host())[0], 0.0f);
  const std::vector<half> values = ToHalves(Ascending());
  ASSERT_TRUE(context_.host().UploadWeights(weights, values.data(), 128).ok());
  ASSERT_TRUE(Reverse(weights, y_.device()).ok());
  EXPECT_EQ(ToFloats(y_.Host())[0], 63.0f);
}

}  // namespace
}  // namespace mk::testing
