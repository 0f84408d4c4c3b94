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
}
