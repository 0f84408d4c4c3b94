// What is declared is what is used: never less, and not much more.
#include "packs/vmamba/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/testing/generator.h"
#include "packs/vmamba/testing/fixture.h"

namespace mk::vmamba {
namespace {

using testing::TestRun;

struct Size {
  int64_t height, width;
};

Parameters Sized(const char* embed_dim, const char* depths, const char* ratio, const char* state,
                 const char* forward_type) {
  Parameters parameters = PlainParameters();
  parameters["config.embed_dim"] = embed_dim;
  parameters["config.depths"] = depths;
  parameters["config.ssm_ratio"] = ratio;
  parameters["config.d_state"] = state;
  parameters["config.forward_type"] = forward_type;
  parameters["preprocess.max_encoded_pixels"] = "1";
  return parameters;
}

uint64_t PeakOf(OpenModel& open, const Size& size) {
  const std::vector<float> input =
      testing::Generate("input", 1, size.height * size.width * 3, 0, 1);
  std::vector<float> logits(static_cast<size_t>(open.model().description().num_classes));
  TestRun run;
  Context context(open.host().services(), *run.table());
  const Status status = RunNetwork(context, open.model().description(), open.model().weights(),
                                   {const_cast<float*>(input.data()), size.height, size.width, 3},
                                   logits.data(), nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  return run.scratch_peak_bytes();
}

TEST(Memory, TheBoundHoldsAndIsNear) {
  const std::vector<Parameters> models = {
      Sized("8", "1-1-2-1", "1.0", "1", "v05_noz"), Sized("16", "1-1", "2.0", "4", "v05"),
      Sized("24", "1-1-1-1", "1.0", "16", "v05_noz"), Sized("12", "2-1", "2.0", "1", "v05")};
  for (const Parameters& parameters : models) {
    const std::string weights = WriteWeights(parameters, 1);
    for (const int threads : {1, 2, 16, 20}) {
      OpenModel open(parameters, weights, threads);
      for (const Size& size : {Size{32, 32}, Size{64, 32}, Size{96, 160}, Size{416, 32}}) {
        const auto peak = static_cast<double>(PeakOf(open, size));
        const auto bound = static_cast<double>(
            NetworkScratchBytes(open.model().description(), size.height, size.width));
        // The sanitizer's gaps between blocks count as used.
        EXPECT_LE(peak, bound + 2048) << threads << " " << size.height << " x " << size.width;
        if (threads < 16) continue;
        EXPECT_GE(peak, bound * 0.6) << size.height << " x " << size.width;
      }
    }
  }
}

TEST(Memory, TheScratchOfALargeMapStaysAFewMaps) {
  // Without tiles the MLP's hidden layer alone would be four maps.
  OpenModel open(Sized("16", "1-1-1-1", "1.0", "1", "v05_noz"),
                 WriteWeights(Sized("16", "1-1-1-1", "1.0", "1", "v05_noz"), 1), 2);
  const Size size = {1024, 512};
  const auto map = static_cast<double>(size.height / 4 * size.width / 4 * 16) * sizeof(float);
  const auto peak = static_cast<double>(PeakOf(open, size));
  std::printf("512 x 1024: first map %.0f bytes, scratch peak %.2f of them\n", map, peak / map);
  EXPECT_LE(peak, 4.5 * map);
}

TEST(Memory, WeightsAreWhatOneLoadAllocates) {
  for (const char* forward_type : {"v05", "v05_noz"}) {
    const Parameters parameters = Sized("8", "1-2", "2.0", "3", forward_type);
    OpenModel open(parameters, WriteWeights(parameters, 1));
    EXPECT_EQ(open.host().test_host().weights_bytes(),
              static_cast<uint64_t>(WeightsBytes(open.model().description())));
  }
}

TEST(Memory, RequestsStayWithinWhatTheDescriptionDeclares) {
  for (const auto& [pixels, sides] : std::vector<std::pair<const char*, Size>>{
           {"16384", {128, 128}}, {"16384", {32, 512}}, {"10240", {64, 160}}}) {
    Parameters parameters = Sized("8", "1-1-2-1", "1.0", "1", "v05_noz");
    parameters["preprocess.max_input_pixels"] = pixels;
    OpenModel open(parameters, WriteWeights(parameters, 1), 16);
    const std::vector<uint8_t> image(static_cast<size_t>(sides.height * sides.width * 3), 7);
    TestRun run;
    AddImage(run, sides.height, sides.width, 3, image);
    const Status status = open.Run(run);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto bound = static_cast<uint64_t>(ScratchBytes(open.model().description()));
    EXPECT_LE(run.scratch_peak_bytes(), bound + 2048);
    EXPECT_GE(run.scratch_peak_bytes() + (2 << 20), bound);  // filters of any shape
  }
}

TEST(Memory, AnInputBeyondTheDeclaredSizeIsRefused) {
  Parameters parameters = Sized("8", "1-1-2-1", "1.0", "1", "v05_noz");
  parameters["preprocess.max_input_pixels"] = "8192";
  OpenModel open(parameters, WriteWeights(parameters, 1));
  const std::vector<uint8_t> image(static_cast<size_t>(96 * 96 * 3), 7);
  TestRun run;
  AddImage(run, 96, 96, 3, image);
  const Status status = open.Run(run);
  EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(),
            "vmamba: input of 96 x 96 pixels passes preprocess.max_input_pixels 8192");
}

TEST(Memory, ThePublishedSizesAtTheirOwnInput) {
  struct Published {
    const char *name, *embed_dim, *depths, *ratio;
  };
  for (const Published& p :
       {Published{"tiny", "96", "2-2-8-2", "1.0"}, Published{"small", "96", "2-2-15-2", "2.0"},
        Published{"base", "128", "2-2-15-2", "2.0"}}) {
    ModelHost host(Sized(p.embed_dim, p.depths, p.ratio, "1", "v05_noz"), "");
    const Result<Description> d = ParseDescription(host.services());
    ASSERT_TRUE(d.ok());
    std::printf("%-5s weights %9ld bytes, scratch at 224 x 224 %9ld, at 1024 x 1024 %9ld\n", p.name,
                static_cast<long>(WeightsBytes(*d)),
                static_cast<long>(NetworkScratchBytes(*d, 224, 224)),
                static_cast<long>(NetworkScratchBytes(*d, 1024, 1024)));
    EXPECT_LT(NetworkScratchBytes(*d, 224, 224), 40 << 20);
  }
}

}  // namespace
}  // namespace mk::vmamba
