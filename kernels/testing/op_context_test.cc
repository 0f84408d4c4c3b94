#include "kernels/testing/op_context.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/device/testing/fake_cuda_fixture.h"
#include "kernels/testing/op_context_sample_emulated.h"
#include "kernels/testing/op_context_sample_params.h"

namespace mk::testing {
namespace {

using device::half;
using samples::ReverseParams;

class OpContextTest : public ::testing::Test {
 protected:
  OpContextTest()
      : x_(&context_.memory(), "x", ToHalves(Ascending())), y_(&context_.memory(), "y", 64) {
    x_.Freeze();
    const DeviceModule& module = context_.Module(mk_emulated_op_context_sample);
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

  OpContext context_;
  emu::DeviceArray<half> x_, y_;
  Kernel<ReverseParams> kernel_;
};

TEST_F(OpContextTest, RunsAnOpAndKeepsItsReport) {
  ASSERT_EQ(context_->device(), DeviceKind::kEmulated);
  const Status status = Reverse(x_.device(), y_.device());
  ASSERT_TRUE(status.ok()) << context_.error();
  EXPECT_EQ(ToFloats(y_.Host())[5], 58.0f);
  ASSERT_EQ(context_.launches().size(), 1u);
  const OpLaunch& launch = context_.launches()[0];
  EXPECT_EQ(launch.kernel, "mk_sample_reverse");
  EXPECT_EQ(launch.block.x, 64u);
  EXPECT_EQ(launch.cost.bytes, launch.report.counts.global_bytes());
}

TEST_F(OpContextTest, SweepsAndMutatesWhatSeveralLaunchesDo) {
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

TEST_F(OpContextTest, AFindingFailsTheLaunchAndTheOp) {
  const Status status = Reverse(y_.device(), y_.device());  // nobody has written y
  EXPECT_EQ(status.code(), MK_INTERNAL);
  EXPECT_NE(context_.error().find("uninitialised"), std::string::npos) << context_.error();
  EXPECT_EQ(Reverse(x_.device(), const_cast<half*>(x_.device())).code(), MK_INTERNAL);
  EXPECT_TRUE(context_.MergedReport().Has(emu::FindingKind::kReadOnlyWrite));
}

TEST_F(OpContextTest, AnOpThatRefusesIsReportedToo) {
  const auto refuse =
      context_.LaunchFunction([] { return InvalidArgument("Foo: n 0 not in 1..4"); });
  const emu::Report report = refuse({});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].what, "Foo: n 0 not in 1..4");
}

TEST_F(OpContextTest, NamesAKernelThatIsNotThere) {
  const DeviceModule& module = context_.Module(mk_emulated_op_context_sample);
  mk_module* loaded = *context_.host().LoadModule(module);
  EXPECT_EQ(context_.host().FindKernel<ReverseParams>(loaded, "mk_nothing").status().code(),
            MK_NOT_FOUND);
  EXPECT_NE(context_.error().find("mk_nothing"), std::string::npos);
}

TEST_F(OpContextTest, RefusesAGridThatNoGpuTakes) {
  const ReverseParams params = {x_.device(), y_.device()};
  EXPECT_EQ(context_->Launch(kernel_, {1, 65536}, {64}, 0, params, {}).code(), MK_INTERNAL);
  EXPECT_EQ(context_->Launch(kernel_, {0}, {64}, 0, params, {}).code(), MK_INTERNAL);
}

TEST_F(OpContextTest, WeightsAreZeroAndTakeUploads) {
  auto* const weights = static_cast<half*>(*context_.host().AllocateWeights(128));
  ASSERT_TRUE(Reverse(weights, y_.device()).ok());
  EXPECT_EQ(ToFloats(y_.Host())[0], 0.0f);
  const std::vector<half> values = ToHalves(Ascending());
  ASSERT_TRUE(context_.host().UploadWeights(weights, values.data(), 128).ok());
  ASSERT_TRUE(Reverse(weights, y_.device()).ok());
  EXPECT_EQ(ToFloats(y_.Host())[0], 63.0f);
}

// The GPU is the fake driver's, and its kernel a host function.
void ReverseKernel(const FakeLaunch& launch, const void* params) {
  const auto& p = *static_cast<const ReverseParams*>(params);
  const auto* x = static_cast<const half*>(launch.memory(p.x, 128));
  auto* y = static_cast<half*>(launch.memory(p.y, 128));
  if (x == nullptr || y == nullptr) return;
  const std::vector<half> values(x, x + 64);
  for (int i = 0; i < 64; ++i) y[i] = values[static_cast<size_t>(63 - i)];
}
// Of sizes that are not its own.
void StrayKernel(const FakeLaunch& launch, const void* params) {
  const auto& p = *static_cast<const ReverseParams*>(params);
  auto* y = static_cast<half*>(launch.memory(p.y, 130));
  if (y != nullptr) y[64] = {0};
}

class OpContextOnGpu : public FakeCudaTest {
 protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    Fake().register_kernel("mk_sample_reverse", sizeof(ReverseParams), 0, 1024, &ReverseKernel);
    Fake().register_kernel("mk_sample_stray", sizeof(ReverseParams), 0, 1024, &StrayKernel);
    context_ = std::make_unique<OpContext>();
    context_->UseGpu(*GpuMirror::Create(NewDevice()));
    ASSERT_EQ((*context_)->device(), DeviceKind::kCuda);
  }
  void TearDown() override {
    context_.reset();
    FakeCudaTest::TearDown();
  }
  Kernel<ReverseParams> Find(const char* name) {
    static const std::string cubin = FakeCubin(87, {"mk_sample_reverse", "mk_sample_stray"});
    static const DeviceImage image = {ImageKind::kCubin, 87, 12000, cubin.data(), cubin.size()};
    const DeviceModule& module = context_->Module(mk_emulated_op_context_sample,
                                                  {"op_context_sample", nullptr, 0, &image, 1});
    return *context_->host().FindKernel<ReverseParams>(*context_->host().LoadModule(module), name);
  }
  Status Launch(const char* name, const half* x, half* y) {
    return (*context_)->Launch(Find(name), {1}, {64}, 0, ReverseParams{x, y}, {256, 0, 0});
  }

  std::unique_ptr<OpContext> context_;
};

TEST_F(OpContextOnGpu, RunsTheImageOnTheTestsMemory) {
  std::vector<float> ascending(64);
  std::iota(ascending.begin(), ascending.end(), 0.0f);
  emu::DeviceArray<half> x(&context_->memory(), "x", ToHalves(ascending));
  emu::DeviceArray<half> y(&context_->memory(), "y", 70);
  x.Freeze();
  ASSERT_TRUE(Launch("mk_sample_reverse", x.device(), y.device() + 6).ok()) << context_->error();
  EXPECT_EQ(ToFloats(y.Host())[6 + 5], 58.0f);
  EXPECT_TRUE(std::isnan(ToFloats(y.Host())[5]));  // as the emulator left it
  EXPECT_EQ(context_->launches().size(), 1u);
}

TEST_F(OpContextOnGpu, AStoreBesideABufferOrIntoAFrozenOneFails) {
  emu::DeviceArray<half> x(&context_->memory(), "x", 64), y(&context_->memory(), "y", 64);
  EXPECT_EQ(Launch("mk_sample_stray", x.device(), y.device()).code(), MK_INTERNAL);
  EXPECT_NE(context_->error().find("mk_sample_stray: stored beside the 128 bytes of \"y\""),
            std::string::npos)
      << context_->error();
  x.Set(ToHalves(std::vector<float>(64, 1.0f)));
  y.Freeze();
  EXPECT_EQ(Launch("mk_sample_reverse", x.device(), y.device()).code(), MK_INTERNAL);
  EXPECT_NE(context_->error().find("\"y\", which is frozen"), std::string::npos)
      << context_->error();
}

TEST_F(OpContextOnGpu, SaysWhenNoImageFits) {
  const DeviceModule& module = context_->Module(mk_emulated_op_context_sample);
  EXPECT_EQ(context_->host().LoadModule(module).status().code(), MK_FAILED_PRECONDITION);
  EXPECT_NE(context_->error().find("op_context_sample"), std::string::npos) << context_->error();
}

}  // namespace
}  // namespace mk::testing
