#include "kernels/roof/roof.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/roof/roof_kernels_emulated.h"
#include "kernels/roof/roof_kernels_images.h"
#include "kernels/testing/op_context.h"

namespace mk {
namespace {

using emu::DeviceArray;
using testing::OpContext;

class Roof : public ::testing::Test {
 protected:
  OpContext context_;
  const RoofKernels kernels_ = *RoofKernels::Load(
      context_.host(), context_.Module(mk_emulated_roof_kernels, mk_images_roof_kernels));
};

TEST_F(Roof, CopiesEveryByteAtRaggedSizes) {
  for (const uint64_t words : {1u, 255u, 1024u, 1025u, 5000u}) {
    std::vector<uint32_t> values(words * 4);
    std::iota(values.begin(), values.end(), 7u);
    DeviceArray<uint32_t> x(&context_.memory(), "x", values);
    DeviceArray<uint32_t> y(&context_.memory(), "y", values.size());
    x.Freeze();
    const RoofCopyParams params = {x.device(), y.device(), static_cast<int64_t>(words) * 16};
    const auto launch =
        context_.LaunchFunction([&] { return RoofCopy(*context_, kernels_, params); });
    const emu::SweepResult sweep = emu::Sweep(launch, testing::BytesOf(y));
    ASSERT_TRUE(sweep.ok) << sweep.text;
    EXPECT_EQ(y.Host(), values);
    EXPECT_EQ(context_.launches()[0].cost.bytes, words * 32);
  }
}

TEST_F(Roof, MovesWhatItSays) {
  MK_ON_EMULATOR_ALONE();
  DeviceArray<uint32_t> x(&context_.memory(), "x", std::vector<uint32_t>(16384, 1u));
  DeviceArray<uint32_t> y(&context_.memory(), "y", 16384);
  ASSERT_TRUE(RoofCopy(*context_, kernels_, {x.device(), y.device(), 65536}).ok());
  EXPECT_EQ(context_.launches()[0].report.counts.global_bytes(), 131072u);
  EXPECT_EQ(context_.launches()[0].report.counts.wasted_sectors(), 0u);
}

TEST_F(Roof, ComputesEveryStep) {
  DeviceArray<float> y(&context_.memory(), "y", 3 * kRoofThreads);
  const RoofMathParams params = {y.device(), 0.5f, 5};
  ASSERT_TRUE(RoofTensor(*context_, kernels_, params, 3).ok()) << context_.error();
  EXPECT_EQ(y.Host(), std::vector<float>(3 * kRoofThreads, kRoofChains * 16 * 0.5f * 5));
  EXPECT_EQ(context_.launches()[0].cost.tensor_flops, 3u * 8 * 5 * kRoofChains * 4096);
  if (!context_.on_gpu()) {
    EXPECT_EQ(context_.launches()[0].report.counts.mma_flops,
              context_.launches()[0].cost.tensor_flops);
  }
  ASSERT_TRUE(RoofFp32(*context_, kernels_, params, 3).ok()) << context_.error();
  EXPECT_EQ(y.Host(), std::vector<float>(3 * kRoofThreads, kRoofChains * 0.5f * 5));
  EXPECT_EQ(context_.launches()[1].cost.flops, 3u * 256 * 5 * kRoofChains * 2);
}

TEST_F(Roof, RefusesByName) {
  DeviceArray<float> y(&context_.memory(), "y", kRoofThreads);
  EXPECT_EQ(RoofCopy(*context_, kernels_, {y.device(), y.device() + 1, 64}).message(),
            "RoofCopy: x, y and bytes must be multiples of 16");
  EXPECT_NE(RoofCopy(*context_, kernels_, {nullptr, y.device(), 64}).message().find("x"),
            std::string::npos);
  EXPECT_NE(
      RoofTensor(*context_, kernels_, {y.device(), 1, 0}, 1).message().find("steps 0 not in 1.."),
      std::string::npos);
  EXPECT_NE(RoofFp32(*context_, kernels_, {y.device(), 1, 1}, 0).message().find("blocks 0"),
            std::string::npos);
  EXPECT_TRUE(context_.launches().empty());
}

}  // namespace
}  // namespace mk
