// The network step by step against the PyTorch reference (golden/README.md).
#include "packs/vmamba/network.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/golden.h"
#include "packs/vmamba/testing/fixture.h"

namespace mk::vmamba {
namespace {

using testing::GoldenFile;
using testing::IsNearRelL2;
using testing::TestRun;
using testing::Transposed;

constexpr double kMaxRelL2 = 1e-5;

// Runs the network on a channel-first input, recording every step.
Recorder RunRecorded(OpenModel& open, const std::vector<float>& input, int64_t channels,
                     int64_t height, int64_t width) {
  std::vector<float> map = Transposed(input, channels, height * width);
  std::vector<float> logits(static_cast<size_t>(open.model().description().num_classes));
  TestRun run;
  Context context(open.host().services(), *run.table());
  Recorder recorder;
  const Tap tap = recorder.tap();
  const Status status = RunNetwork(context, open.model().description(), open.model().weights(),
                                   {map.data(), height, width, channels}, logits.data(), &tap);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(logits, recorder.At("logits"));
  EXPECT_EQ(run.scratch_used_bytes(), 0u);
  return recorder;
}

// The parameters of a golden's model: its metadata, and no preprocessing.
Parameters ParametersOf(const GoldenFile& golden) {
  Parameters parameters = PlainParameters();
  for (const auto& [key, value] : golden.metadata) {
    if (key.rfind("config.", 0) == 0) parameters[key] = value;
  }
  return parameters;
}

class ReducedModel : public ::testing::TestWithParam<const char*> {};

TEST_P(ReducedModel, EqualsTheReferenceStageByStage) {
  const GoldenFile golden =
      GoldenFile::Read(std::string(kGoldenFolder) + "reduced_" + GetParam() + ".safetensors");
  const Parameters parameters = ParametersOf(golden);
  const auto seed = static_cast<uint64_t>(golden.Integer("seed"));
  const int64_t height = golden.Integer("height");
  const int64_t width = golden.Integer("width");
  const std::vector<float> input =
      testing::GenerateByRule(golden.metadata.at("input"), {3, height, width}, seed);
  const std::string weights = WriteWeights(parameters, seed);
  for (const int threads : {1, 2}) {
    OpenModel open(parameters, weights, threads);
    const Recorder recorder = RunRecorded(open, input, 3, height, width);
    const std::vector<int64_t>& depths = open.model().description().depths;
    for (const auto& [name, want] : golden.tensors) {
      std::string step = name;
      if (name.rfind("layers.", 0) == 0) {
        const auto stage = static_cast<size_t>(std::stoll(name.substr(7)));
        const bool last = stage + 1 == depths.size();
        step += last ? ".blocks." + std::to_string(depths[stage] - 1) : ".downsample";
      }
      const ::testing::AssertionResult near =
          IsNearRelL2(recorder.At(step), want.values, kMaxRelL2, want.shape);
      EXPECT_TRUE(near) << name;
      std::printf("reduced_%s %s: %s\n", GetParam(), name.c_str(), near.message());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, ReducedModel, ::testing::Values("a", "b", "c", "d", "e"));

TEST(PicoModel, EqualsTheReferenceBlockByBlock) {
  const GoldenFile golden =
      GoldenFile::Read(std::string(kGoldenFolder) + "pico_stages.safetensors");
  OpenModel open = OpenModel::Pico();
  const Recorder recorder = RunRecorded(open, golden.At("input").values, 1, 32, 32);
  for (const auto& [name, want] : golden.tensors) {
    if (name == "image" || name == "input") continue;
    const ::testing::AssertionResult near =
        IsNearRelL2(recorder.At(name), want.values, kMaxRelL2, want.shape);
    EXPECT_TRUE(near) << name;
    std::printf("pico %s: %s\n", name.c_str(), near.message());
  }
}

TEST(PicoModel, DoesNotDependOnTheThreads) {
  const GoldenFile golden =
      GoldenFile::Read(std::string(kGoldenFolder) + "pico_stages.safetensors");
  OpenModel one = OpenModel::Pico(1);
  OpenModel three = OpenModel::Pico(3);
  const std::vector<float>& input = golden.At("input").values;
  EXPECT_EQ(RunRecorded(one, input, 1, 32, 32).At("logits"),
            RunRecorded(three, input, 1, 32, 32).At("logits"));
}

}  // namespace
}  // namespace mk::vmamba
