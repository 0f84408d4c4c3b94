// The planning device and what is computed from its launches: against CUDA's own occupancy, real
// machine code, and sums by hand.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "core/device/images.h"
#include "core/device/planning/board.h"
#include "core/device/planning/cubin.h"
#include "core/device/planning/occupancy.h"
#include "core/device/planning/planning_device.h"
#include "core/device/planning/predict.h"
#include "kernels/device/image.h"
#include "kernels/emulator/sample_gemm_images.h"
#include "kernels/emulator/sample_reduce_images.h"

namespace mk {
namespace {

const Board& Agx() { return **FindBoard("agx-orin-64gb"); }

TEST(Boards, HaveNamesOfTheirOwnAndPlausibleRates) {
  std::set<std::string> names;
  for (const Board& board : Boards()) {
    SCOPED_TRACE(board.name);
    EXPECT_TRUE(names.insert(board.name).second);
    EXPECT_GT(board.sm_count, 0);
    EXPECT_GT(board.tensor.per_second, board.fp32.per_second);
    EXPECT_GT(board.dram.per_second, 10e9);
    EXPECT_LT(board.dram.per_second, 10e12);
    EXPECT_GE(board.memory_bytes, uint64_t{4} << 30);
    EXPECT_NE(std::string(board.source), "");
  }
}

TEST(Boards, AnUnknownNameIsToldTheKnownOnes) {
  const auto board = FindBoard("agx-orin-46gb");
  ASSERT_TRUE(absl::IsNotFound(board.status()));
  EXPECT_NE(board.status().message().find("did you mean agx-orin-64gb?"), std::string::npos)
      << board.status();
  EXPECT_NE(board.status().message().find("thor-t5000"), std::string::npos);
}

// The worked examples of CUDA 13.0's cuda_occupancy.h.
TEST(Occupancy, IsThatOfCudasOwnHeader) {
  const SmLimits& orin = *Agx().limits;
  const SmLimits& thor = *(*FindBoard("thor-t5000"))->limits;
  const SmLimits& hopper = *(*FindBoard("h200"))->limits;
  for (const SmLimits* limits : {&orin, &thor, &hopper}) {
    EXPECT_EQ(ComputeOccupancy(*limits, 128, 168, 48 * 1024).blocks_per_sm, 3);
    EXPECT_EQ(ComputeOccupancy(*limits, 128, 255, 64 * 1024).blocks_per_sm, 2);
  }
  EXPECT_EQ(ComputeOccupancy(orin, 256, 128, 96 * 1024).blocks_per_sm, 1);
  EXPECT_EQ(ComputeOccupancy(thor, 256, 128, 96 * 1024).blocks_per_sm, 2);
  EXPECT_EQ(ComputeOccupancy(hopper, 256, 128, 96 * 1024).blocks_per_sm, 2);
}

TEST(Occupancy, NamesWhatBoundsIt) {
  const SmLimits& orin = *Agx().limits;
  EXPECT_STREQ(ComputeOccupancy(orin, 256, 16, 0).bound, "warps");
  EXPECT_STREQ(ComputeOccupancy(orin, 32, 16, 0).bound, "blocks");
  EXPECT_STREQ(ComputeOccupancy(orin, 256, 128, 0).bound, "registers");
  EXPECT_STREQ(ComputeOccupancy(orin, 128, 16, 80 * 1024).bound, "shared memory");
  EXPECT_EQ(ComputeOccupancy(orin, 128, 16, 164 * 1024).blocks_per_sm, 0);
  EXPECT_DOUBLE_EQ(ComputeOccupancy(orin, 256, 128, 0).warps_share, 16.0 / 48.0);
}

std::string_view Bytes(const DeviceImage& image) {
  return {static_cast<const char*>(image.data), image.bytes};
}

// Machine code of before CUDA 13 and for sm_87 also has the registers in its sections' info.
TEST(Cubin, RegistersAreThoseOfTheSectionHeaders) {
  if (mk_images_sample_gemm.image_count == 0) {
    std::printf("skipped: no CUDA toolkit at build time\n");
    GTEST_SKIP();
  }
  int compared = 0;
  for (mk_u32 i = 0; i < mk_images_sample_reduce.image_count; ++i) {
    const DeviceImage& image = mk_images_sample_reduce.images[i];
    if (image.kind != ImageKind::kCubin) continue;
    const auto kernels = ReadCubin(Bytes(image));
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    ASSERT_EQ(kernels->count("mk_sample_reduce"), 1u);
    EXPECT_GT(kernels->at("mk_sample_reduce").registers, 0);
    EXPECT_EQ(kernels->at("mk_sample_reduce").stack_bytes, 0u);
    if (image.sm != 87) continue;
    Elf64_Ehdr header;
    std::memcpy(&header, image.data, sizeof header);
    for (int s = 0; s < header.e_shnum; ++s) {
      Elf64_Shdr section;
      std::memcpy(&section,
                  static_cast<const char*>(image.data) + header.e_shoff + s * sizeof section,
                  sizeof section);
      if (section.sh_type != SHT_PROGBITS || section.sh_info >> 24 == 0) continue;
      EXPECT_EQ(static_cast<int>(section.sh_info >> 24), kernels->at("mk_sample_reduce").registers);
      ++compared;
    }
  }
  EXPECT_GE(compared, 1);  // one a toolkit
}

TEST(Cubin, AnyCutOfItIsSafe) {
  for (mk_u32 i = 0; i < mk_images_sample_reduce.image_count; ++i) {
    const std::string_view whole = Bytes(mk_images_sample_reduce.images[i]);
    for (size_t size = 0; size < whole.size(); size += 7) {
      ReadCubin(whole.substr(0, size)).status().IgnoreError();
    }
    std::string spoilt(whole);
    for (size_t at = 0; at < spoilt.size(); at += 3) {
      spoilt[at] = static_cast<char>(spoilt[at] ^ 0x5a);
      ReadCubin(spoilt).status().IgnoreError();
    }
  }
  EXPECT_FALSE(ReadCubin("").ok());
  EXPECT_FALSE(ReadCubin(std::string(64, '\0')).ok());
}

class Planning : public testing::Test {
 protected:
  Planning() : device_(NewPlanningDevice(Agx())), stream_(*device_->NewStream()) {
    // Text tells no registers, and so any name is taken.
    module_ = *device_->LoadModule({MK_IMAGE_PTX, 80, 12000, 0, "", 1});
    kernel_ = *module_->Find("k");
  }
  absl::Status Launch(const LaunchDims& dims) {
    return device_->Launch(*stream_, *kernel_, dims, nullptr, 0);
  }

  std::unique_ptr<PlanningDevice> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Module> module_;
  DeviceKernel* kernel_;
};

TEST_F(Planning, CountsMemoryAndRefusesWhatTheBoardDoesNotHave) {
  auto a = device_->Allocate(1000);
  ASSERT_TRUE(a.ok());
  {
    auto b = device_->Allocate(5000);
    ASSERT_TRUE(b.ok());
    EXPECT_GE(static_cast<char*>((*b)->data()) - static_cast<char*>((*a)->data()), 1000);
    EXPECT_EQ(device_->in_use_bytes(), 6000u);
  }
  EXPECT_EQ(device_->in_use_bytes(), 1000u);
  EXPECT_EQ(device_->peak_bytes(), 6000u);
  const auto too_much = device_->Allocate(Agx().memory_bytes);
  EXPECT_TRUE(absl::IsResourceExhausted(too_much.status())) << too_much.status();
}

TEST_F(Planning, RecordsLaunchesInOrderWithTheirWork) {
  uint64_t live = 77;
  device_->WatchMemory([&live] { return live; });
  ASSERT_TRUE(Launch({{4, 1, 1}, {128, 1, 1}, 0, {100, 200, 300}}).ok());
  live = 5;
  ASSERT_TRUE(Launch({{5, 2, 1}, {32, 2, 1}, 64, {}}).ok());
  ASSERT_EQ(device_->launches().size(), 2u);
  EXPECT_EQ(device_->launches()[0].dims.work.tensor_flops, 300u);
  EXPECT_EQ(device_->launches()[0].live_bytes, 77u);
  EXPECT_EQ(device_->launches()[1].dims.grid[1], 2u);
  EXPECT_EQ(device_->launches()[1].live_bytes, 5u);
  EXPECT_FALSE(device_->launches()[0].resources.has_value());
  device_->Clear();
  EXPECT_TRUE(device_->launches().empty());
}

TEST_F(Planning, RefusesLaunchesThatNoGpuTakes) {
  const std::pair<LaunchDims, const char*> kWrong[] = {
      {{{1, 1, 1}, {1025, 1, 1}, 0}, "1025 threads a block, 1 to 1024 are allowed"},
      {{{1, 1, 1}, {0, 1, 1}, 0}, "0 threads a block"},
      {{{0, 1, 1}, {32, 1, 1}, 0}, "grid 0 x 1 x 1"},
      {{{1, 65536, 1}, {32, 1, 1}, 0}, "grid 1 x 65536 x 1"},
      {{{1, 1, 1}, {32, 1, 1}, 164 * 1024}, "167936 bytes of shared memory a block"},
  };
  for (const auto& [dims, words] : kWrong) {
    const absl::Status status = Launch(dims);
    EXPECT_NE(status.message().find(words), std::string::npos) << status;
  }
  EXPECT_TRUE(device_->launches().empty());
}

TEST_F(Planning, ReadsBackZerosAndCountsCopies) {
  char host[8] = "abcdefg";
  ASSERT_TRUE(device_->CopyToHost(*stream_, host, nullptr, 8).ok());
  EXPECT_EQ(host[3], 0);
  ASSERT_TRUE(device_->CopyToDevice(*stream_, nullptr, host, 5).ok());
  EXPECT_EQ(device_->copied_to_host_bytes(), 8u);
  EXPECT_EQ(device_->copied_to_device_bytes(), 5u);
}

TEST_F(Planning, KnowsTheRegistersOfMachineCodeForItsBoard) {
  if (mk_images_sample_gemm.image_count == 0) {
    std::printf("skipped: no CUDA toolkit at build time\n");
    GTEST_SKIP();
  }
  std::vector<mk_kernel_image> images;
  for (mk_u32 i = 0; i < mk_images_sample_gemm.image_count; ++i) {
    const DeviceImage& image = mk_images_sample_gemm.images[i];
    images.push_back({static_cast<mk_image_kind>(image.kind), image.sm, image.least_driver, 0,
                      image.data, image.bytes});
  }
  auto loaded = LoadImages(*device_, "gemm", images);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  auto kernel = loaded->module->Find("mk_sample_gemm");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_TRUE(absl::IsNotFound(loaded->module->Find("mk_other").status()));
  ASSERT_TRUE(
      device_->Launch(*stream_, **kernel, {{4, 4, 1}, {128, 1, 1}, 16384}, nullptr, 0).ok());
  ASSERT_TRUE(device_->launches()[0].resources.has_value());
  const Prediction p = Predict(Agx(), device_->launches()[0], 0);
  EXPECT_TRUE(p.known);
  EXPECT_GE(p.occupancy.blocks_per_sm, 2);
}

PlannedLaunch Of(uint32_t blocks, LaunchWork work) {
  return {"k", {{blocks, 1, 1}, {128, 1, 1}, 0, work}, std::nullopt, 0};
}

TEST(Predict, IsTheLargerOfMemoryAndMath) {
  // 152.8 GB/s, 33.4 TFLOPS, 16 SMs.
  const Prediction memory = Predict(Agx(), Of(160, {152'800'000, 0, 1'000'000}), 0);
  EXPECT_NEAR(memory.seconds, 1e-3, 1e-9);
  EXPECT_STREQ(memory.bound, "memory");
  const Prediction tensor = Predict(Agx(), Of(160, {1000, 0, 33'400'000'000}), 0);
  EXPECT_NEAR(tensor.seconds, 1e-3, 1e-9);
  EXPECT_STREQ(tensor.bound, "tensor");
  EXPECT_STREQ(Predict(Agx(), Of(160, {1000, 1'000'000'000, 1000}), 0).bound, "fp32");
}

TEST(Predict, BlocksThatDoNotFillTheLastRoundCostMath) {
  const LaunchWork work = {0, 0, 33'400'000'000};
  EXPECT_NEAR(Predict(Agx(), Of(16, work), 0).seconds, 1e-3, 1e-9);
  EXPECT_NEAR(Predict(Agx(), Of(17, work), 0).seconds, 1e-3 * 32 / 17, 1e-9);
  EXPECT_NEAR(Predict(Agx(), Of(8, work), 0).seconds, 2e-3, 1e-9);
  EXPECT_DOUBLE_EQ(Predict(Agx(), Of(33, work), 0).balance, 33.0 / 48.0);
}

TEST(Predict, ALaunchThatSaysNothingIsBoundByLaunching) {
  const Prediction p = Predict(Agx(), Of(1, {}), 3e-6);
  EXPECT_STREQ(p.bound, "launch");
  EXPECT_DOUBLE_EQ(p.seconds, 3e-6);
}

}  // namespace
}  // namespace mk
