// The pack's class as the host drives it: signature, requests good and bad, memory.
#include "packs/vmamba/model.h"

#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/testing/compare.h"
#include "kernels/testing/golden.h"
#include "packs/vmamba/preprocess.h"
#include "packs/vmamba/testing/fixture.h"

namespace mk::vmamba {
namespace {

using testing::TestRun;

std::vector<uint8_t> Pixels(int64_t height, int64_t width, int64_t channels) {
  std::vector<uint8_t> pixels(static_cast<size_t>(height * width * channels));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37 + i / 251);
  return pixels;
}

std::string TestPng(int64_t height, int64_t width, int64_t channels,
                    const std::vector<uint8_t>& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  image.flags = PNG_IMAGE_FLAG_FAST;
  std::string png(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = png.size();
  EXPECT_TRUE(png_image_write_to_memory(&image, png.data(), &size, 0, pixels.data(), 0, nullptr));
  png.resize(size);
  return png;
}

// ---- Signature

struct Collected {
  mk_signature table = {sizeof(mk_signature), 0, this, &AddInput, &AddOutput};
  std::vector<mk_tensor_spec> inputs;
  std::vector<mk_tensor_spec> outputs;
  std::vector<std::vector<int64_t>> shapes;

  static mk_status AddInput(void* self, const mk_tensor_spec* spec) {
    return static_cast<Collected*>(self)->Add(static_cast<Collected*>(self)->inputs, spec);
  }
  static mk_status AddOutput(void* self, const mk_tensor_spec* spec) {
    return static_cast<Collected*>(self)->Add(static_cast<Collected*>(self)->outputs, spec);
  }
  mk_status Add(std::vector<mk_tensor_spec>& list, const mk_tensor_spec* spec) {
    list.push_back(*spec);
    shapes.emplace_back(spec->shape, spec->shape + spec->rank);
    return MK_OK;
  }
};

TEST(VMamba, DescribesWhatTheManifestSays) {
  ModelHost host(PicoParameters(), "");
  Collected collected;
  SignatureBuilder builder(&collected.table);
  ASSERT_TRUE(VMamba::Describe(host.services(), builder).ok());
  const auto manifest = PicoManifest();
  ASSERT_EQ(collected.inputs.size(), 2u);
  ASSERT_EQ(collected.outputs.size(), 1u);
  size_t next = 0;
  for (const auto& input : manifest.inputs()) {
    EXPECT_EQ(collected.inputs[next].name, input.name());
    EXPECT_EQ(collected.inputs[next].flags == MK_TENSOR_OPTIONAL, input.optional());
    EXPECT_EQ(collected.shapes[next],
              std::vector<int64_t>(input.shape().begin(), input.shape().end()));
    ++next;
  }
  EXPECT_EQ(collected.inputs[0].dtype, MK_DTYPE_UINT8);
  EXPECT_EQ(collected.inputs[1].dtype, MK_DTYPE_BYTES);
  EXPECT_EQ(collected.outputs[0].name, manifest.outputs(0).name());
  EXPECT_EQ(collected.shapes[2], (std::vector<int64_t>{10}));
}

TEST(VMamba, DescribeAndCreateRefuseABrokenDescription) {
  Parameters parameters = PicoParameters();
  parameters["config.depths"] = "0";
  ModelHost host(parameters, "");
  Collected collected;
  SignatureBuilder builder(&collected.table);
  EXPECT_EQ(VMamba::Describe(host.services(), builder).code(), MK_INVALID_ARGUMENT);
  EXPECT_EQ(VMamba::Create(host.services()).status().code(), MK_INVALID_ARGUMENT);
}

TEST(VMamba, CreateElsewhereNeedsAHostThatLaunches) {
  ModelHost host(PicoParameters(), "", 1, "cuda");
  const Status status = VMamba::Create(host.services()).status();
  EXPECT_EQ(status.code(), MK_UNIMPLEMENTED);
  EXPECT_EQ(status.message(), "host offers no mk.kernels/1: nothing to launch on");
}

// ---- Requests

TEST(VMamba, AnswersTheProbesCases) {
  const auto golden = testing::GoldenFile::Read(std::string(kPicoFolder) + "golden.safetensors");
  OpenModel open = OpenModel::Pico();
  for (int64_t n = 0; n < golden.Integer("cases"); ++n) {
    const std::string name = "case" + std::to_string(n);
    TestRun run;
    AddImage(run, 28, 28, 1, golden.At(name + ".input.image").bytes);
    const Status status = open.Run(run);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(testing::IsNearRelL2(Logits(run), golden.At(name + ".output.logits").values, 1e-5));
    EXPECT_EQ(run.scratch_used_bytes(), 0u);
  }
}

TEST(VMamba, AnEncodedImageIsTheImage) {
  OpenModel open = OpenModel::Pico();
  for (const int64_t channels : {1, 3}) {
    const std::vector<uint8_t> pixels = Pixels(61, 47, channels);
    TestRun raw;
    AddImage(raw, 61, 47, channels, pixels);
    ASSERT_TRUE(open.Run(raw).ok());
    TestRun encoded;
    encoded.AddBytesInput("encoded_image", TestPng(61, 47, channels, pixels));
    const Status status = open.Run(encoded);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(Logits(raw), Logits(encoded));
  }
}

TEST(VMamba, WantsExactlyOneImage) {
  OpenModel open = OpenModel::Pico();
  TestRun neither;
  EXPECT_EQ(open.Run(neither).message(),
            "vmamba: send exactly one of image and encoded_image; got neither");
  const std::vector<uint8_t> pixels = Pixels(28, 28, 1);
  TestRun both;
  AddImage(both, 28, 28, 1, pixels);
  both.AddBytesInput("encoded_image", TestPng(28, 28, 1, pixels));
  const Status status = open.Run(both);
  EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "vmamba: send exactly one of image and encoded_image; got both");
}

TEST(VMamba, RefusesImagesByName) {
  OpenModel open = OpenModel::Pico();
  const std::vector<uint8_t> pixels = Pixels(28, 28, 4);
  TestRun four_channels;
  AddImage(four_channels, 28, 28, 4, pixels);
  EXPECT_EQ(open.Run(four_channels).code(), MK_INVALID_ARGUMENT);
  TestRun empty;
  AddImage(empty, 0, 28, 1, {});
  EXPECT_EQ(open.Run(empty).message(), "vmamba: image height 0 not in 1..16384");
  TestRun flat;
  flat.AddInput("image", MK_DTYPE_UINT8, {28, 28}, pixels.data(), 28 * 28);
  EXPECT_EQ(open.Run(flat).message(), "vmamba: image rank 2 is not 3");
}

TEST(VMamba, RefusesWhatIsNoEncodedImage) {
  OpenModel open = OpenModel::Pico();
  TestRun text;
  text.AddBytesInput("encoded_image", "this is no image");
  const Status status = open.Run(text);
  EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
  EXPECT_EQ(status.message().rfind("vmamba: encoded_image: ", 0), 0u) << status.message();

  std::string png = TestPng(40, 40, 3, Pixels(40, 40, 3));
  TestRun cut;
  cut.AddBytesInput("encoded_image", png.substr(0, png.size() / 2));
  EXPECT_EQ(open.Run(cut).code(), MK_INVALID_ARGUMENT);

  const std::string broken("\x05\0\0\0abc", 7);  // says 5 bytes, has 3
  TestRun packed;
  packed.AddInput("encoded_image", MK_DTYPE_BYTES, {1}, broken.data(), broken.size());
  EXPECT_EQ(open.Run(packed).message(),
            "vmamba: encoded_image: 7 bytes are not one length-prefixed element");
}

TEST(VMamba, RefusesAnEncodedImageBeyondItsLimitBeforeDecoding) {
  Parameters parameters = PicoParameters();
  parameters["preprocess.max_encoded_pixels"] = "1000";
  OpenModel open(parameters, std::string(kPicoFolder) + kWeightsFile);
  TestRun run;
  run.AddBytesInput("encoded_image", TestPng(40, 26, 1, Pixels(40, 26, 1)));
  const Status status = open.Run(run);
  EXPECT_EQ(status.code(), MK_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(),
            "vmamba: encoded_image of 40 x 26 pixels passes 1000 pixels or a side of 16384; send "
            "it smaller, or as image");
  EXPECT_LT(run.scratch_peak_bytes(), 1000u);
}

TEST(VMamba, StopsSoonAfterTheCallerHasGone) {
  OpenModel open = OpenModel::Pico();
  const std::vector<uint8_t> pixels = Pixels(28, 28, 1);
  TestRun run;
  AddImage(run, 28, 28, 1, pixels);
  run.set_cancelled(true);
  const Status status = open.Run(run);
  EXPECT_EQ(status.code(), MK_CANCELLED);
  EXPECT_EQ(status.message(), "vmamba: cancelled after stem");
  EXPECT_EQ(run.scratch_used_bytes(), 0u);
}

TEST(VMamba, ReportsExhaustedScratchAndGoesOn) {
  OpenModel open = OpenModel::Pico();
  const std::vector<uint8_t> pixels = Pixels(28, 28, 1);
  for (uint64_t limit = 0; limit < 65536; limit += 997) {
    TestRun run;
    AddImage(run, 28, 28, 1, pixels);
    run.set_scratch_limit_bytes(limit);
    const Status status = open.Run(run);
    if (status.ok()) break;
    EXPECT_EQ(status.code(), MK_RESOURCE_EXHAUSTED);
    EXPECT_EQ(run.scratch_used_bytes(), 0u);
  }
  TestRun run;
  AddImage(run, 28, 28, 1, pixels);
  EXPECT_TRUE(open.Run(run).ok());
}

// ---- Memory

TEST(VMamba, ManifestDeclaresTheMemoryThatIsUsed) {
  const auto memory = PicoManifest().memory();
  OpenModel open = OpenModel::Pico(16);  // more threads, more scratch for the resize
  EXPECT_EQ(open.host().test_host().weights_bytes(), memory.weights_bytes());
  uint64_t peak = 0;
  for (const ImageSize& size : {ImageSize{256, 16384, 3}, ImageSize{16384, 256, 3},
                                ImageSize{2048, 2048, 3}, ImageSize{28, 28, 1}}) {
    const std::vector<uint8_t> pixels = Pixels(size.height, size.width, size.channels);
    TestRun run;
    run.AddBytesInput("encoded_image", TestPng(size.height, size.width, size.channels, pixels));
    const Status status = open.Run(run);
    ASSERT_TRUE(status.ok()) << status.message();
    std::printf("encoded %ld x %ld: scratch peak %lu bytes\n", static_cast<long>(size.height),
                static_cast<long>(size.width),
                static_cast<unsigned long>(run.scratch_peak_bytes()));
    peak = std::max(peak, run.scratch_peak_bytes());
  }
  EXPECT_LE(peak, memory.scratch_bytes());
  EXPECT_GE(peak, memory.scratch_bytes() / 10 * 9);  // and not much more than that
}

}  // namespace
}  // namespace mk::vmamba
