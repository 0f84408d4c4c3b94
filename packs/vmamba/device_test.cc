// The pack itself on devices that take its launches: its real device code, run by the emulator, and
// the plan of it. The shared object is the test variant of the pack, which carries emulated images.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/device/host_services.h"
#include "core/device/testing/emulated_device.h"
#include "core/loader/loaded_model.h"
#include "core/loader/manifest.h"
#include "core/loader/plan_pack.h"
#include "core/loader/repository.h"
#include "core/loader/sealed_pack.h"
#include "core/loader/single_lane.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/golden.h"
#include "packs/vmamba/memory.h"
#include "packs/vmamba/testing/fashion_mnist.h"
#include "packs/vmamba/testing/fixture.h"
#include "tests/packs/pack_builder.h"

namespace mk::vmamba {
namespace {

constexpr double kMaxRelL2 = 3e-3;

PackSpec PicoSpec() {
  PackSpec spec;
  spec.manifest = PicoManifest();
  spec.library = ReadRunfile("packs/vmamba/vmamba_emulated.so");
  spec.small["golden.safetensors"] = ReadRunfile("packs/vmamba/pico/golden.safetensors");
  spec.small["labels.txt"] = ReadRunfile("packs/vmamba/pico/labels.txt");
  spec.weights["model.safetensors"] = ReadRunfile("packs/vmamba/pico/model.safetensors");
  return spec;
}

// A model with generated weights, and an input of its own size: no resize, no normalisation.
PackSpec ReducedSpec(const Parameters& parameters, uint64_t seed) {
  PackSpec spec = PicoSpec();
  spec.small.erase("golden.safetensors");
  spec.manifest.clear_golden();
  spec.manifest.mutable_parameters()->clear();
  for (const auto& [key, value] : parameters) (*spec.manifest.mutable_parameters())[key] = value;
  spec.weights["model.safetensors"] = ReadRunfile(WriteWeights(parameters, seed));
  spec.manifest.mutable_memory()->set_weights_bytes(64 << 20);
  spec.manifest.mutable_memory()->set_device_scratch_bytes(64 << 20);
  spec.manifest.mutable_outputs(0)->set_shape(0, std::stoll(parameters.at("config.num_classes")));
  return spec;
}

// A pack loaded on a device, with one lane.
class Loaded {
 public:
  Loaded(Device& device, PackSpec spec) : device_(device), services_(OneThread()) {
    const std::string name = spec.manifest.name();
    repository_.Install(name, 1, std::move(spec));
    auto repository = Repository::Open(repository_.root());
    auto folder = (*repository)->OpenVersion(name, 1);
    auto sealed = SealedPack::Read(folder->get(), name, 1, 64 << 20, "vmamba-test");
    if (!sealed.ok()) Stop(sealed.status());
    sealed_ = *sealed;
    auto model = LoadedModel::Create(sealed_, device_, services_, nullptr);
    if (!model.ok()) Stop(model.status());
    model_ = *std::move(model);
    auto lane = SingleLane::Create(*model_, device_, /*capture=*/false);
    if (!lane.ok()) Stop(lane.status());
    lane_ = *std::move(lane);
  }

  // Logits of one image [height, width, channels].
  std::vector<float> Classify(const uint8_t* pixels, int64_t height, int64_t width,
                              int64_t channels) {
    InferRequest request;
    request.inputs.push_back({"image",
                              MK_DTYPE_UINT8,
                              {height, width, channels},
                              pixels,
                              static_cast<uint64_t>(height * width * channels)});
    const auto response = lane_->Run(request);
    if (!response.ok()) {
      ADD_FAILURE() << response.status();
      return {};
    }
    const HostBlock& block = response->outputs[0].block;
    const auto* logits = static_cast<const float*>(block.data());
    return {logits, logits + block.size() / sizeof(float)};
  }

  uint64_t scratch_bytes() const { return lane_->scratch().capacity_bytes(); }
  uint64_t scratch_peak_bytes() const { return lane_->scratch().high_water_bytes(); }
  std::shared_ptr<const SealedPack> sealed() const { return sealed_; }

 private:
  static HostServicesOptions OneThread() {
    HostServicesOptions options;
    options.threads = 1;
    return options;
  }
  [[noreturn]] static void Stop(const absl::Status& status) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::abort();
  }

  Device& device_;
  TestRepository repository_;
  HostServices services_;
  std::shared_ptr<const SealedPack> sealed_;
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<SingleLane> lane_;
};

// All detectors for the first image; then what a run needs to be right.
EmulatedOptions Quick() {
  EmulatedOptions options;
  options.emulator.races = false;
  options.emulator.uninitialised = false;
  options.emulator.count = false;
  return options;
}

size_t ArgMax(const std::vector<float>& logits) {
  return static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// 20 of the test images here, 1,000 with MK_PICO_IMAGES=1000.
TEST(PicoEmulated, ClassifiesTestImagesAsTheCpuDeviceDoes) {
  const char* asked = std::getenv("MK_PICO_IMAGES");
  const int64_t count = asked != nullptr ? std::stoll(asked) : 20;
  const FashionMnist set = ReadFashionMnist();
  ASSERT_FALSE(set.images.empty());
  OpenModel cpu = OpenModel::Pico();
  const auto device = NewEmulatedDevice(Quick());
  Loaded emulated(*device, PicoSpec());
  std::vector<float> got, want;
  int64_t same = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* const image = set.image(i);
    testing::TestRun run;
    run.AddInput("image", MK_DTYPE_UINT8, {28, 28, 1}, image, 784);
    ASSERT_TRUE(cpu.Run(run).ok());
    const std::vector<float> expected = Logits(run);
    const std::vector<float> logits = emulated.Classify(image, 28, 28, 1);
    ASSERT_EQ(logits.size(), expected.size());
    same += ArgMax(logits) == ArgMax(expected) ? 1 : 0;
    got.insert(got.end(), logits.begin(), logits.end());
    want.insert(want.end(), expected.begin(), expected.end());
  }
  const ::testing::AssertionResult near = testing::IsNearRelL2(got, want, kMaxRelL2, {count, 10});
  EXPECT_TRUE(near);
  EXPECT_GE(static_cast<double>(same), 0.995 * static_cast<double>(count));
  std::printf("pico emulated: %ld images, logits %s, %ld same first class\n",
              static_cast<long>(count), near.message(), static_cast<long>(same));
}

TEST(PicoEmulated, ALaneHasTheScratchThatIsDeclaredForDevices) {
  const auto device = NewEmulatedDevice(Quick());
  const Loaded emulated(*device, PicoSpec());
  EXPECT_EQ(emulated.scratch_bytes(), PicoManifest().memory().device_scratch_bytes());
  EXPECT_NE(emulated.scratch_bytes(), PicoManifest().memory().scratch_bytes());
}

TEST(PicoEmulated, OneImageUnderEveryDetector) {
  const FashionMnist set = ReadFashionMnist();
  ASSERT_FALSE(set.images.empty());
  const auto device = NewEmulatedDevice({});
  Loaded emulated(*device, PicoSpec());
  ASSERT_EQ(emulated.Classify(set.image(0), 28, 28, 1).size(), 10u);
  EXPECT_LE(emulated.scratch_peak_bytes(), ScratchBytesOn(emulated.sealed()->manifest, "cuda"));
  uint64_t launches = 0;
  for (const auto& [kernel, use] : device->Use()) {
    std::printf("%-40s %3lu launches, says %9lu bytes, asked for %9lu\n", kernel.c_str(),
                static_cast<unsigned long>(use.launches),
                static_cast<unsigned long>(use.work_bytes),
                static_cast<unsigned long>(use.global_bytes));
    launches += use.launches;
  }
  EXPECT_LE(launches, 80u);
}

class ReducedEmulated : public ::testing::TestWithParam<const char*> {};

// Gated and not, one state and several, ragged channels, any sides.
TEST_P(ReducedEmulated, GivesTheLogitsOfTheCpuDevice) {
  const auto golden = testing::GoldenFile::Read(std::string(kGoldenFolder) + "reduced_" +
                                                GetParam() + ".safetensors");
  Parameters parameters = PlainParameters();
  for (const auto& [key, value] : golden.metadata) {
    if (key.rfind("config.", 0) == 0) parameters[key] = value;
  }
  const auto seed = static_cast<uint64_t>(golden.Integer("seed"));
  const int64_t height = golden.Integer("height") / 32 * 32;
  const int64_t width = (golden.Integer("width") + 31) / 32 * 32;
  std::vector<uint8_t> image(static_cast<size_t>(height * width * 3));
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(i * 2654435761u >> 9);
  OpenModel cpu(parameters, WriteWeights(parameters, seed));
  testing::TestRun run;
  AddImage(run, height, width, 3, image);
  ASSERT_TRUE(cpu.Run(run).ok());
  const auto device = NewEmulatedDevice(Quick());
  Loaded emulated(*device, ReducedSpec(parameters, seed));
  const std::vector<float> logits = emulated.Classify(image.data(), height, width, 3);
  const ::testing::AssertionResult near =
      testing::IsNearRelL2(logits, Logits(run), 5e-3, {static_cast<int64_t>(logits.size())});
  EXPECT_TRUE(near);
  std::printf("reduced_%s emulated: %s\n", GetParam(), near.message());
}

INSTANTIATE_TEST_SUITE_P(Goldens, ReducedEmulated, ::testing::Values("a", "b", "c", "d", "e"));

TEST(PicoPlanned, LaunchesAndMemoryAreThoseOfTheRealRun) {
  const auto device = NewEmulatedDevice(Quick());
  Loaded emulated(*device, PicoSpec());
  const FashionMnist set = ReadFashionMnist();
  ASSERT_FALSE(set.images.empty());
  ASSERT_FALSE(emulated.Classify(set.image(0), 28, 28, 1).empty());
  uint64_t launches = 0, bytes = 0;
  for (const auto& [kernel, use] : device->Use()) {
    launches += use.launches;
    bytes += use.work_bytes;
  }
  const auto plan = PlanPack(emulated.sealed(), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  uint64_t planned = 0;
  for (const auto& launch : plan->launches()) planned += launch.bytes();
  EXPECT_EQ(static_cast<uint64_t>(plan->launches_size()), launches);
  EXPECT_EQ(planned, bytes);
  EXPECT_EQ(plan->scratch_peak_bytes(), emulated.scratch_peak_bytes());
  OpenModel pico = OpenModel::Pico();
  EXPECT_EQ(PicoManifest().memory().device_scratch_bytes(),
            static_cast<uint64_t>(DeviceScratchBytes(pico.model().description())));
  std::printf("pico planned: %d launches, %lu bytes, scratch %lu\n", plan->launches_size(),
              static_cast<unsigned long>(planned),
              static_cast<unsigned long>(plan->scratch_peak_bytes()));
}

}  // namespace
}  // namespace mk::vmamba
