// Compiles the contract as C++17 and pins what other languages' bindings would rely on.
#include <gtest/gtest.h>

#include <cstring>
#include <type_traits>

#include "core/abi/mk_pack.h"

TEST(MkPack, MagicReadsAsText) {
  const mk_u64 magic = MK_PACK_MAGIC;
  char text[9] = {};
  std::memcpy(text, &magic, 8);
  EXPECT_STREQ(text, "MKPACK01");
}

TEST(MkPack, TablesAreStandardLayout) {
  EXPECT_TRUE(std::is_standard_layout_v<mk_pack>);
  EXPECT_TRUE(std::is_standard_layout_v<mk_host>);
  EXPECT_TRUE(std::is_standard_layout_v<mk_run>);
  EXPECT_TRUE(std::is_trivially_copyable_v<mk_tensor>);
}

TEST(MkPack, EveryTableBeginsWithItsSize) {
  EXPECT_EQ(offsetof(mk_host, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_run, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_signature, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_tensor_spec, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_log_service, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_files_service, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_weights_service, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_parallel_service, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_blas_service, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_image_service, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_kernels_service, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_launch, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_device_service, struct_size), 0u);
  EXPECT_EQ(offsetof(mk_capture_extension, struct_size), 0u);
}

// 1.1 only appended: these are the sizes that packs of 1.0 were compiled with.
TEST(MkPack, WhatStoodIn10StandsWhereItStood) {
  EXPECT_EQ(MK_RUN_SIZE_1_0, 112u);
  EXPECT_EQ(MK_WEIGHTS_SERVICE_SIZE_1_0, 32u);
  EXPECT_EQ(sizeof(mk_host), 40u);
  EXPECT_EQ(sizeof(mk_tensor), 40u);
  EXPECT_EQ(sizeof(mk_weight), 40u);
}

// 1.2 only appended: the size that packs of 1.1 were compiled with.
TEST(MkPack, WhatStoodIn11StandsWhereItStood) { EXPECT_EQ(MK_LAUNCH_SIZE_1_1, 48u); }
