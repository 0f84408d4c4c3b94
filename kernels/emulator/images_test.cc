// What the build rule makes of a `.cu` for GPUs, read back: the right machine, the tensor path,
// nothing spilled to memory.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "kernels/device/image.h"
#include "kernels/emulator/instructions_images.h"
#include "kernels/emulator/sample_gemm_images.h"
#include "kernels/emulator/sample_layer_norm_images.h"
#include "kernels/emulator/sample_reduce_images.h"

namespace mk {
namespace {

constexpr uint16_t kEmCuda = 190;

const DeviceModule* const kModules[] = {&mk_images_sample_gemm, &mk_images_sample_layer_norm,
                                        &mk_images_sample_reduce, &mk_images_instructions};

// Where the build found no toolkit this says so, and the tests have nothing to read.
bool HaveImages() {
  if (mk_images_sample_gemm.image_count > 0) return true;
  std::printf(
      "skipped: no CUDA toolkit at build time, so there are no images for GPUs; "
      "deploy/cuda-toolkit.sh\n");
  return false;
}

TEST(Images, AreOnePerTargetEachByItself) {
  if (!HaveImages()) GTEST_SKIP();
  for (const DeviceModule* module : kModules) {
    bool has[3] = {};
    for (mk_u32 i = 0; i < module->image_count; ++i) {
      const DeviceImage& image = module->images[i];
      EXPECT_GE(image.least_driver, 12060u);
      if (image.kind == ImageKind::kCubin) {
        Elf64_Ehdr header;
        ASSERT_GT(image.bytes, sizeof(header));
        std::memcpy(&header, image.data, sizeof(header));
        EXPECT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0)
            << module->name;  // not a compressed fatbin
        EXPECT_EQ(header.e_machine, kEmCuda);
        // ABI version 7 (CUDA 12) has the SM in the low byte of the flags, version 8 (CUDA 13) in
        // the second.
        const uint32_t sm =
            header.e_ident[EI_ABIVERSION] >= 8 ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff;
        EXPECT_EQ(sm, image.sm) << module->name << " flags " << header.e_flags;
        // A driver of CUDA 12 reads version 7 and no newer.
        EXPECT_EQ(header.e_ident[EI_ABIVERSION], image.least_driver >= 13000 ? 8 : 7)
            << module->name << ", least driver " << image.least_driver;
        has[0] = has[0] || image.sm == 87;
        has[1] = has[1] || image.sm == 110;
      } else {
        ASSERT_EQ(image.kind, ImageKind::kPtx);
        const std::string ptx(static_cast<const char*>(image.data), image.bytes);
        EXPECT_EQ(ptx.back(), '\0');
        EXPECT_NE(ptx.find(".target sm_" + std::to_string(image.sm)), std::string::npos);
        has[2] = true;
      }
    }
    EXPECT_TRUE(has[0] && has[2]) << module->name;
    EXPECT_TRUE(has[1] || module->images[0].least_driver < 13000) << module->name;
  }
}

// JetPack 6 has drivers of CUDA 12.6: they load neither machine code nor text of CUDA 13.
TEST(Images, HaveCodeForDriversOfJetPack6) {
  if (!HaveImages()) GTEST_SKIP();
  for (const DeviceModule* module : kModules) {
    bool cubin = false, text = false;
    for (mk_u32 i = 0; i < module->image_count; ++i) {
      const DeviceImage& image = module->images[i];
      if (image.least_driver > 12060) continue;
      cubin = cubin || (image.kind == ImageKind::kCubin && image.sm == 87);
      text = text || image.kind == ImageKind::kPtx;
    }
    if (!cubin && !text) {
      std::printf(
          "skipped: no NVRTC of CUDA 12.6 at build time, so packs have no code for JetPack 6; "
          "deploy/cuda-toolkit.sh\n");
      GTEST_SKIP();
    }
    EXPECT_TRUE(cubin && text) << module->name;
  }
}

const std::string Ptx(const DeviceModule& module) {
  for (mk_u32 i = 0; i < module.image_count; ++i) {
    if (module.images[i].kind != ImageKind::kPtx) continue;
    return std::string(static_cast<const char*>(module.images[i].data), module.images[i].bytes);
  }
  return "";
}

TEST(Images, TakeTheTensorPath) {
  if (!HaveImages()) GTEST_SKIP();
  const std::string gemm = Ptx(mk_images_sample_gemm);
  for (const char* instruction : {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                                  "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                                  "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
                                  "cp.async.cg.shared.global", "cp.async.wait_group"}) {
    EXPECT_NE(gemm.find(instruction), std::string::npos) << instruction;
  }
  const std::string all = Ptx(mk_images_instructions);
  for (const char* instruction :
       {"bf16.bf16.f32", "tf32.tf32.f32", "s32.s8.s8.s32", "redux.sync", "match.any.sync",
        "ld.global.nc.v4", "st.global.cs.v4", "fma.rn.f16x2", "cvt.rn.bf16x2.f32"}) {
    EXPECT_NE(all.find(instruction), std::string::npos) << instruction;
  }
}

TEST(Images, SpillNothing) {
  if (!HaveImages()) GTEST_SKIP();
  for (const DeviceModule* module : kModules) {
    const std::string ptx = Ptx(*module);
    for (const char* instruction : {"ld.local", "st.local", ".f64"}) {
      EXPECT_EQ(ptx.find(instruction), std::string::npos) << module->name << " has " << instruction;
    }
  }
}

TEST(Images, NameTheirKernels) {
  ASSERT_EQ(mk_images_sample_gemm.kernel_count, 1u);
  EXPECT_STREQ(mk_images_sample_gemm.kernels[0], "mk_sample_gemm");
}

}  // namespace
}  // namespace mk
