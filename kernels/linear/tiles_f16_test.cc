// The tile table: what fits, and that the choice follows wave quantisation.
#include "kernels/linear/tiles_f16.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/linear/linear_f16_shapes.h"

namespace mk {
namespace {

constexpr mk_i32 kBoards[] = {4, 8, 14, 16, 20, 132};

std::string Name(const TileF16& tile) {
  return std::to_string(tile.m) + "x" + std::to_string(tile.n);
}

std::string Chosen(int64_t m, int64_t n, mk_i32 sms) {
  return Name(kTilesF16[ChooseTileF16(m, n, sms)]);
}

TEST(TilesF16, FitAnSmOfOrinAsOftenAsTheySay) {
  // sm_87: 164 KB of shared memory, of which a block reserves 1 KB; 1536 threads, 16 blocks.
  for (const TileF16& tile : kTilesF16) {
    EXPECT_LE(tile.blocks_per_sm * (TileSharedBytesF16(tile) + 1024), 164 * 1024) << Name(tile);
    EXPECT_LE(tile.blocks_per_sm * TileThreadsF16(tile), 1536) << Name(tile);
    EXPECT_LE(tile.blocks_per_sm, 16) << Name(tile);
    EXPECT_EQ(tile.n, 32 * tile.warps_n) << Name(tile);
  }
  EXPECT_GE(kTilesF16[k128x128].blocks_per_sm, 2);
}

TEST(TilesF16, SharedMemoryIsWhatTheStaticGatesAreTold) {
  // `dynamic_shared` in kernels/linear/BUILD and kernels/conv/BUILD.
  const mk_i32 told[kTileCountF16] = {65536, 49152, 49152, 32768, 24576};
  for (int i = 0; i < kTileCountF16; ++i) {
    EXPECT_EQ(TileSharedBytesF16(kTilesF16[i]), told[i]) << Name(kTilesF16[i]);
  }
}

TEST(TilesF16, BlocksCoverTheProduct) {
  EXPECT_EQ(TileBlocksF16(kTilesF16[k128x128], 1, 1), 1);
  EXPECT_EQ(TileBlocksF16(kTilesF16[k128x128], 129, 128), 2);
  EXPECT_EQ(TileBlocksF16(kTilesF16[k128x64], 1370, 384), 11 * 6);
}

TEST(TilesF16, AFewBlocksMoreThanOneEachCostAWave) {
  // 16 blocks of 128 x 128 on 16 SMs, then one row more: half the machine waits for it.
  const TileF16& tile = kTilesF16[k128x128];
  const double full = TileTimeF16(tile, 16 * 128, 128, 16);
  EXPECT_DOUBLE_EQ(TileTimeF16(tile, 15 * 128 + 1, 128, 16), full);
  EXPECT_GT(TileTimeF16(tile, 16 * 128 + 1, 128, 16), 1.5 * full);
}

TEST(TilesF16, LargeProductsTakeTheLargestTileOnEveryBoard) {
  for (const mk_i32 sms : kBoards) EXPECT_EQ(Chosen(16384, 4096, sms), "128x128") << sms;
}

TEST(TilesF16, SmallProductsAreSpreadOverTheBoard) {
  // 49 x 768 are 12 tiles of 64 x 64: on 16 SMs better than 24 smaller ones, two of which would
  // follow each other on some; where there is room for all 24, they are.
  EXPECT_EQ(Chosen(49, 768, 16), "64x64");
  EXPECT_EQ(Chosen(49, 768, 132), "32x64");
  for (const mk_i32 sms : kBoards) EXPECT_EQ(Chosen(1, 10, sms), "32x64");
}

TEST(TilesF16, TheChoiceIsNeverSlowerThanAnyOther) {
  for (const mk_i32 sms : kBoards) {
    for (const LinearF16Shape& shape : kLinearF16ModelShapes) {
      const double chosen =
          TileTimeF16(kTilesF16[ChooseTileF16(shape.m, shape.n, sms)], shape.m, shape.n, sms);
      for (const TileF16& tile : kTilesF16) {
        EXPECT_LE(chosen, TileTimeF16(tile, shape.m, shape.n, sms)) << shape.name << sms;
      }
    }
  }
}

TEST(TilesF16, MoreSmsAreNeverSlower) {
  for (const LinearF16Shape& shape : kLinearF16ModelShapes) {
    double before = 1e300;
    for (const mk_i32 sms : kBoards) {
      const double time =
          TileTimeF16(kTilesF16[ChooseTileF16(shape.m, shape.n, sms)], shape.m, shape.n, sms);
      EXPECT_LE(time, before) << shape.name << " on " << sms;
      before = time;
    }
  }
}

TEST(TilesF16, WhatModelsGet) {
  // Written out, so that a change of the model's constants shows what it changes.
  std::string table;
  for (const LinearF16Shape& shape : kLinearF16ModelShapes) {
    table += shape.name;  // then on 8, 16, 20 and 132 SMs
    for (const mk_i32 sms : {8, 16, 20, 132}) table += " " + Chosen(shape.m, shape.n, sms);
    table += "\n";
  }
  EXPECT_EQ(table,
            "vmamba_t_s1_fc1 128x128 128x128 128x128 64x64\n"
            "vmamba_t_s1_fc2 128x64 128x128 128x64 64x64\n"
            "vmamba_t_s2_fc1 64x128 64x128 64x128 64x64\n"
            "vmamba_t_s3_fc1 128x128 128x64 128x64 64x64\n"
            "vmamba_t_s3_fc2 64x64 64x64 64x64 32x64\n"
            "vmamba_t_s4_fc2 64x64 64x64 64x64 32x64\n"
            "vmamba_t_s1_512_fc1 128x128 128x128 128x128 128x128\n");
}

}  // namespace
}  // namespace mk
