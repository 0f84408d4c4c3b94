// Plans of real packs, by the real probe: what they launch and take, and each refusal.
#include "core/loader/plan_pack.h"

#include <gtest/gtest.h>

#include <string>

#include "core/weights/testing/write_safetensors.h"
#include "tests/packs/pack_builder.h"

namespace mk {
namespace {

class PlanTest : public testing::Test {
 protected:
  absl::StatusOr<mergekernel::v1::Plan> Plan(const PackSpec& spec, const PlanOptions& options) {
    repository_.Install("p", 1, spec);
    auto repository = Repository::Open(repository_.root());
    auto folder = (*repository)->OpenVersion("p", 1);
    auto sealed = SealedPack::Read(folder->get(), "p", 1, 64 << 20, "mk-plan-test");
    EXPECT_TRUE(sealed.ok()) << sealed.status();
    return RunPlan(**sealed, {"core/loader/mergekernel-probe", 20, 1}, options);
  }
  static PackSpec OnDevice() {
    PackSpec spec = AffineOnDeviceSpec(WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, 1})}}));
    spec.manifest.mutable_golden()->set_file("golden.safetensors");
    spec.small["golden.safetensors"] =
        WriteSafetensors({{"case0.input.X", "F32", {3}, FloatBytes({3, 4, 5})},
                          {"case0.output.Y", "F32", {3}, FloatBytes({7, 9, 11})}});
    return spec;
  }
  static PlanOptions With(const std::string& input) {
    PlanOptions options;
    options.inputs.push_back(*ParsePlannedInput(input));
    return options;
  }
  static void ExpectSays(const absl::Status& status, const std::string& part) {
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status;
  }
  TestRepository repository_;
};

TEST_F(PlanTest, TheShapesOfTheFirstGoldenCase) {
  const auto plan = Plan(OnDevice(), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->board(), "agx-orin-64gb");
  ASSERT_EQ(plan->inputs_size(), 1);
  EXPECT_EQ(plan->inputs(0).name(), "X");
  EXPECT_EQ(plan->inputs(0).datatype(), "FP32");
  EXPECT_EQ(plan->inputs(0).shape(0), 3);
  EXPECT_EQ(plan->weights_bytes(), 8u);
  ASSERT_EQ(plan->launches_size(), 1);
  EXPECT_EQ(plan->launches(0).kernel(), "mk_affine");
  EXPECT_EQ(plan->launches(0).bytes(), 24u);
  EXPECT_EQ(plan->launches(0).flops(), 6u);
  EXPECT_FALSE(plan->launches(0).has_resources());  // text tells no registers
  EXPECT_EQ(plan->copied_to_device_bytes(), 12u);
  EXPECT_EQ(plan->copied_to_host_bytes(), 12u);
  // Input and output lie in the lane's scratch, each rounded up.
  EXPECT_EQ(plan->scratch_peak_bytes(), 512u);
  ASSERT_EQ(plan->notes_size(), 1);
  EXPECT_NE(plan->notes(0).find("module 'affine': PTX compute_80"), std::string::npos);
}

TEST_F(PlanTest, ShapesOfOnesOwnOnAnotherBoard) {
  PlanOptions options = With("X=100000");
  options.board = "thor-t5000";
  const auto plan = Plan(OnDevice(), options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->board(), "thor-t5000");
  EXPECT_EQ(plan->launches(0).grid(0), 391u);
  EXPECT_EQ(plan->launches(0).bytes(), 800000u);
  EXPECT_EQ(plan->copied_to_device_bytes(), 400000u);
}

TEST_F(PlanTest, RefusesByName) {
  PlanOptions options;
  options.board = "xavier";
  ExpectSays(Plan(OnDevice(), options).status(), "board 'xavier' is none of agx-orin-64gb");
  ExpectSays(Plan(OnDevice(), With("Z=3")).status(), "no input 'Z'; the pack has X");
  ExpectSays(Plan(OnDevice(), With("X=3x3")).status(), "rank");
  ExpectSays(Plan(OnDevice(), With("X=99999999999")).status(), "more than 1073741824 bytes");
  PackSpec bare = OnDevice();
  bare.manifest.clear_golden();
  bare.small.clear();
  ExpectSays(Plan(bare, {}).status(), "no golden case to take shapes from");
  ExpectSays(Plan(FixtureSpec("create_fails"), With("X=1")).status(), "devices do not name 'cuda'");
}

TEST_F(PlanTest, AnInputsTextIsNameAndDims) {
  const auto input = ParsePlannedInput("image=224x224x3");
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->name, "image");
  EXPECT_EQ(input->shape, (std::vector<int64_t>{224, 224, 3}));
  for (const char* wrong : {"", "image", "=3", "image=", "image=3x", "image=-1", "image=axb",
                            "image=1x1x1x1x1x1x1x1x1"}) {
    ExpectSays(ParsePlannedInput(wrong).status(), "must read NAME=DIMxDIM");
  }
}

}  // namespace
}  // namespace mk
