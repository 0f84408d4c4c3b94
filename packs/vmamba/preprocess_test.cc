#include "packs/vmamba/preprocess.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/testing/compare.h"
#include "kernels/testing/golden.h"
#include "packs/vmamba/testing/fixture.h"

namespace mk::vmamba {
namespace {

Description ParseOrDie(const Parameters& parameters) {
  ModelHost host(parameters, "");
  Result<Description> description = ParseDescription(host.services());
  return *description;
}

std::vector<float> PrepareOrDie(const Description& description, const ImageSize& size,
                                const std::vector<uint8_t>& pixels) {
  testing::TestContext context;
  Result<PreparePlan> plan = PlanPreparation(description, size);
  std::vector<float> out(
      static_cast<size_t>(plan->out_height * plan->out_width * description.preprocessing.channels));
  const Status status =
      Prepare(*context, description.preprocessing, *plan, pixels.data(), out.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

std::string Refusal(const Parameters& parameters, const ImageSize& size) {
  Result<PreparePlan> plan = PlanPreparation(ParseOrDie(parameters), size);
  EXPECT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), MK_INVALID_ARGUMENT);
  return plan.status().message();
}

TEST(Prepare, EqualsTheReferenceOnATestImage) {
  const auto golden =
      testing::GoldenFile::Read(std::string(kGoldenFolder) + "pico_stages.safetensors");
  // One channel: channel-first and channel-last are the same.
  EXPECT_EQ(PrepareOrDie(ParseOrDie(PicoParameters()), {28, 28, 1}, golden.At("image").bytes),
            golden.At("input").values);
}

// pixel(y, x, c) = (37 y^2 + 91 x + 53 c (x + 1) + x y) mod 256, as train/preprocess.py was given.
std::vector<uint8_t> PatternImage(const ImageSize& size) {
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < size.height; ++y) {
    for (int64_t x = 0; x < size.width; ++x) {
      for (int64_t c = 0; c < size.channels; ++c) {
        pixels.push_back(static_cast<uint8_t>(37 * y * y + 91 * x + 53 * c * (x + 1) + x * y));
      }
    }
  }
  return pixels;
}

TEST(Prepare, EqualsTheReferenceOnAShrunkColourImage) {
  Parameters parameters = PlainParameters();
  parameters["config.in_chans"] = parameters["preprocess.channels"] = "1";
  parameters["config.depths"] = "1-1";
  parameters["preprocess.resize"] = "6";
  parameters["preprocess.crop"] = "4";
  parameters["preprocess.pad"] = "2";
  parameters["preprocess.mean"] = "0.25";
  parameters["preprocess.std"] = "0.5";
  const ImageSize size = {9, 13, 3};
  const std::vector<double> inside = {0.249684811, 0.461645067, 0.519030452, 0.632096887,
                                      0.526832819, 0.581391931, 0.662133694, 0.433608949,
                                      0.42427665,  0.605384469, 0.693114161, 0.393686354,
                                      0.471021712, 0.55402267,  0.580639124, 0.350697577};
  std::vector<double> want(64, -0.5);  // the padding: (0 - mean) / std
  for (size_t i = 0; i < inside.size(); ++i) want[(i / 4 + 2) * 8 + i % 4 + 2] = inside[i];
  EXPECT_TRUE(testing::IsNear(PrepareOrDie(ParseOrDie(parameters), size, PatternImage(size)), want,
                              1e-6, 0, {8, 8, 1}));
}

TEST(Prepare, EqualsTheReferenceOnAnEnlargedGreyImage) {
  Parameters parameters = PlainParameters();
  parameters["config.depths"] = "1-1";
  parameters["preprocess.resize"] = "8";
  parameters["preprocess.crop"] = "8";
  parameters["preprocess.mean"] = "0.5,0.25,0.125";
  parameters["preprocess.std"] = "0.5,1,2";
  const ImageSize size = {3, 2, 1};
  const std::vector<double> last_row = {
      0.0519608259, 0.275980413, 0.200490206, 0.0519608259, 0.275980413, 0.200490206,
      0.143014669,  0.321507335, 0.223253667, 0.325122595,  0.412561297, 0.268780649,
      0.507230401,  0.503615201, 0.3143076,   0.689338207,  0.594669104, 0.359834552,
      0.78039217,   0.640196085, 0.382598042, 0.78039217,   0.640196085, 0.382598042};
  const std::vector<float> out = PrepareOrDie(ParseOrDie(parameters), size, PatternImage(size));
  ASSERT_EQ(out.size(), 8u * 8 * 3);
  EXPECT_TRUE(testing::IsNear({out.end() - 24, out.end()}, last_row, 1e-6, 0, {8, 3}));
}

TEST(PlanPreparation, CentresTheCropAndRoundsDown) {
  const Description d = ParseOrDie(PicoParameters());
  Result<PreparePlan> plan = PlanPreparation(d, {1080, 1919, 3});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->resized_height, 28);
  EXPECT_EQ(plan->resized_width, 49);  // 1919 * 28 / 1080 = 49.75
  EXPECT_EQ(plan->crop_top, 0);
  EXPECT_EQ(plan->crop_left, 10);  // 21 / 2
  EXPECT_EQ(plan->out_height, 32);
  EXPECT_EQ(plan->out_width, 32);
}

TEST(PlanPreparation, TakesAnySizeWithACrop) {
  const Description d = ParseOrDie(PicoParameters());
  for (const ImageSize& size :
       {ImageSize{1, 1, 1}, ImageSize{1, 16384, 3}, ImageSize{16384, 4096, 3},
        ImageSize{8192, 8192, 1}, ImageSize{29, 28, 1}}) {
    Result<PreparePlan> plan = PlanPreparation(d, size);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan->out_height, 32);
    EXPECT_EQ(plan->out_width, 32);
  }
}

TEST(PlanPreparation, RefusesImagesBeyondTheLimits) {
  const Parameters pico = PicoParameters();
  EXPECT_EQ(Refusal(pico, {0, 5, 1}), "vmamba: image height 0 not in 1..16384");
  EXPECT_EQ(Refusal(pico, {5, 16385, 1}), "vmamba: image width 16385 not in 1..16384");
  EXPECT_EQ(Refusal(pico, {INT64_MAX, INT64_MAX, 1}),
            "vmamba: image height 9223372036854775807 not in 1..16384");
  EXPECT_EQ(Refusal(pico, {8192, 8193, 1}), "vmamba: image of 8192 x 8193 pixels > 67108864");
  EXPECT_EQ(Refusal(pico, {8, 8, 4}),
            "vmamba: image channels 4 is neither 1 nor 3 (the shape is height, width, channels)");
}

TEST(PlanPreparation, WithoutACropWantsSidesThatDivide) {
  const Parameters plain = PlainParameters();
  EXPECT_TRUE(PlanPreparation(ParseOrDie(plain), {64, 96, 3}).ok());
  EXPECT_EQ(Refusal(plain, {64, 97, 3}), "vmamba: input width 97 is no multiple of 32");
  EXPECT_EQ(Refusal(plain, {48, 96, 3}), "vmamba: input height 48 is no multiple of 32");
}

TEST(PlanPreparation, WithoutAResizeWantsRoomForTheCrop) {
  Parameters parameters = PlainParameters();
  parameters["preprocess.crop"] = "64";
  EXPECT_TRUE(PlanPreparation(ParseOrDie(parameters), {64, 70, 3}).ok());
  EXPECT_EQ(Refusal(parameters, {64, 63, 3}),
            "vmamba: image of 64 x 63 is smaller than the crop 64");
}

}  // namespace
}  // namespace mk::vmamba
