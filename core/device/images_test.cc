#include "core/device/images.h"

#include <gtest/gtest.h>

#include <map>

namespace mk {
namespace {

constexpr char kBytes[] = "bytes";

mk_kernel_image Image(mk_image_kind kind, mk_u32 sm, mk_u32 driver) {
  return {kind, sm, driver, 0, kBytes, sizeof kBytes};
}

DeviceFacts Facts(const std::string& kind, int sm, int driver) {
  DeviceFacts facts;
  facts.kind = kind;
  facts.sm = sm;
  facts.driver_version = driver;
  return facts;
}

// What a pack for all boards carries: two toolkits' cubins, Thor's, PTX, and the test variant's.
const std::vector<mk_kernel_image> kAll = {
    Image(MK_IMAGE_PTX, 80, 12060),   Image(MK_IMAGE_CUBIN, 87, 12060),
    Image(MK_IMAGE_CUBIN, 87, 13000), Image(MK_IMAGE_CUBIN, 110, 13000),
    Image(MK_IMAGE_PTX, 87, 13000),   Image(MK_IMAGE_EMULATED, 0, 0)};

TEST(OrderImages, NewestThatTheDriverReadsFirstMachineCodeBeforeText) {
  EXPECT_EQ(OrderImages(kAll, Facts("cuda", 87, 13020)).candidates,
            (std::vector<size_t>{2, 1, 4, 0}));
  EXPECT_EQ(OrderImages(kAll, Facts("cuda", 87, 12060)).candidates, (std::vector<size_t>{1, 0}));
  EXPECT_EQ(OrderImages(kAll, Facts("cuda", 110, 13000)).candidates,
            (std::vector<size_t>{3, 4, 0}));
  EXPECT_EQ(OrderImages(kAll, Facts("cuda", 90, 13000)).candidates, (std::vector<size_t>{4, 0}));
  EXPECT_EQ(OrderImages(kAll, Facts("emulated", 87, 0)).candidates, (std::vector<size_t>{5}));
}

TEST(OrderImages, SaysWhyTheOthersAreNot) {
  EXPECT_EQ(OrderImages(kAll, Facts("cuda", 87, 12060)).refused,
            (std::vector<std::string>{"cubin sm_87 (driver 13.0 or newer): the driver is 12.6",
                                      "cubin sm_110 (driver 13.0 or newer): the device is sm_87",
                                      "PTX compute_87 (driver 13.0 or newer): the driver is 12.6",
                                      "emulated module: the device is cuda"}));
  EXPECT_EQ(OrderImages(
                std::vector<mk_kernel_image>{Image(9, 0, 0), {MK_IMAGE_PTX, 80, 0, 0, nullptr, 4}},
                Facts("cuda", 87, 12060))
                .refused,
            (std::vector<std::string>{"image of kind 9: its kind is unknown to this host",
                                      "PTX compute_80: it is empty"}));
}

// A device that takes what it is told to.
class Picky : public Device {
 public:
  explicit Picky(DeviceFacts facts) : facts_(std::move(facts)) {}
  std::map<mk_u32, absl::Status> answers;  // by least_driver

  const DeviceFacts& facts() const override { return facts_; }
  absl::StatusOr<std::unique_ptr<Module>> LoadModule(const mk_kernel_image& image) override {
    struct Empty : Module {
      absl::StatusOr<DeviceKernel*> Find(const std::string&) override {
        return absl::NotFoundError("empty");
      }
    };
    const absl::Status answer = answers[image.least_driver];
    if (!answer.ok()) return answer;
    return std::unique_ptr<Module>(std::make_unique<Empty>());
  }
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(uint64_t) override {
    return absl::UnimplementedError("");
  }
  uint64_t in_use_bytes() const override { return 0; }
  uint64_t free_bytes() const override { return 0; }
  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override {
    return absl::UnimplementedError("");
  }
  absl::Status CopyToDevice(Stream&, void*, const void*, uint64_t) override { return {}; }
  absl::Status CopyToHost(Stream&, void*, const void*, uint64_t) override { return {}; }
  absl::Status Launch(Stream&, DeviceKernel&, const LaunchDims&, const void*, uint64_t) override {
    return {};
  }
  absl::Status Canary() override { return {}; }

 private:
  const DeviceFacts facts_;
};

TEST(LoadImages, TakesTheFirstThatTheDeviceTakes) {
  Picky device(Facts("cuda", 87, 13020));
  device.answers[13000] = absl::InvalidArgumentError("ABI unknown");
  const auto loaded = LoadImages(device, "scale", kAll);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->image, 1u);
  EXPECT_EQ(loaded->notes.back(), "cubin sm_87 (driver 13.0 or newer): ABI unknown");
}

TEST(LoadImages, NoneFitsIsSaidPerImage) {
  Picky device(Facts("cuda", 72, 11040));
  const auto loaded = LoadImages(device, "scale", kAll);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      loaded.status().message(),
      "module 'scale': none of its 6 images runs here: PTX compute_80 (driver 12.6 or newer): "
      "the device is sm_72; cubin sm_87 (driver 12.6 or newer): the device is sm_72; cubin "
      "sm_87 (driver 13.0 or newer): the device is sm_72; cubin sm_110 (driver 13.0 or newer): "
      "the device is sm_72; PTX compute_87 (driver 13.0 or newer): the device is sm_72; "
      "emulated module: the device is cuda");
  EXPECT_EQ(LoadImages(device, "scale", {}).status().message(),
            "module 'scale': none of its 0 images runs here");
}

TEST(LoadImages, WhatNoOtherImageMendsEndsTheSearch) {
  Picky device(Facts("cuda", 87, 13020));
  device.answers[13000] = absl::ResourceExhaustedError("no memory");
  const auto loaded = LoadImages(device, "scale", kAll);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace mk
