// The emulated device as the loader and the lanes use it.
#include "core/device/testing/emulated_device.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/device/images.h"
#include "kernels/emulator/sample_reduce_emulated.h"
#include "kernels/emulator/samples/samples_params.h"

namespace mk {
namespace {

constexpr int kCount = 3000;

class Emulated : public testing::Test {
 protected:
  Emulated() : device_(NewEmulatedDevice({})), stream_(*device_->NewStream()) {
    const mk_kernel_image image = {
        MK_IMAGE_EMULATED, 0, 0, 0, &mk_emulated_sample_reduce, sizeof(mk_emulated_sample_reduce)};
    loaded_ = *LoadImages(*device_, "reduce", {image});
  }
  template <typename T>
  T* New(const std::vector<T>& values) {
    buffers_.push_back(*device_->Allocate(values.size() * sizeof(T)));
    EXPECT_TRUE(device_
                    ->CopyToDevice(*stream_, buffers_.back()->data(), values.data(),
                                   values.size() * sizeof(T))
                    .ok());
    return static_cast<T*>(buffers_.back()->data());
  }

  std::unique_ptr<EmulatedDevice> device_;
  std::unique_ptr<Stream> stream_;
  LoadedImages loaded_;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
};

TEST_F(Emulated, RunsDeviceCodeOnItsOwnMemory) {
  const samples::ReduceParams params = {New(std::vector<float>(kCount, 1.0f)),
                                        New(std::vector<float>(4)), New(std::vector<mk_u32>(1)),
                                        New(std::vector<float>(1)), kCount};
  auto kernel = loaded_.module->Find("mk_sample_reduce");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const absl::Status status = device_->Launch(
      *stream_, **kernel, {{4, 1, 1}, {256, 1, 1}, 0, {12000, 0, 0}}, &params, sizeof params);
  ASSERT_TRUE(status.ok()) << status;
  float sum = 0;
  ASSERT_TRUE(device_->CopyToHost(*stream_, &sum, params.sum, sizeof sum).ok());
  EXPECT_EQ(sum, kCount);
  const auto use = device_->Use();
  EXPECT_EQ(use.at("mk_sample_reduce").launches, 1u);
  EXPECT_EQ(use.at("mk_sample_reduce").work_bytes, 12000u);
  EXPECT_GE(use.at("mk_sample_reduce").global_bytes, 12000u);
}

TEST_F(Emulated, WhatTheEmulatorFindsFailsTheLaunch) {
  const samples::ReduceParams params = {New(std::vector<float>(10)), New(std::vector<float>(4)),
                                        New(std::vector<mk_u32>(1)), New(std::vector<float>(1)),
                                        kCount};
  auto kernel = loaded_.module->Find("mk_sample_reduce");
  const absl::Status status =
      device_->Launch(*stream_, **kernel, {{4, 1, 1}, {256, 1, 1}, 0}, &params, sizeof params);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("out of bounds"), std::string::npos) << status;
  EXPECT_NE(status.message().find("mk_sample_reduce"), std::string::npos) << status;
}

TEST_F(Emulated, GivesMemoryBackAndKeepsItsBudget) {
  EmulatedOptions options;
  options.budget_bytes = 1000;
  const auto small = NewEmulatedDevice(options);
  {
    auto a = small->Allocate(900);
    ASSERT_TRUE(a.ok());
    EXPECT_EQ(small->in_use_bytes(), 900u);
    EXPECT_TRUE(absl::IsResourceExhausted(small->Allocate(101).status()));
  }
  EXPECT_EQ(small->in_use_bytes(), 0u);
}

TEST_F(Emulated, TakesEmulatedModulesOnly) {
  EXPECT_TRUE(absl::IsNotFound(loaded_.module->Find("mk_other").status()));
  const mk_kernel_image ptx = {MK_IMAGE_PTX, 80, 0, 0, "x", 1};
  EXPECT_TRUE(absl::IsFailedPrecondition(LoadImages(*device_, "reduce", {ptx}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(device_->LoadModule(ptx).status()));
}

}  // namespace
}  // namespace mk
