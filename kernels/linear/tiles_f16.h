// The block tiles of matrix products on tensor cores, and which of them a product takes. The table
// is plain, for device code too.
#ifndef MERGEKERNEL_KERNELS_LINEAR_TILES_F16_H_
#define MERGEKERNEL_KERNELS_LINEAR_TILES_F16_H_

#include "core/abi/mk_types.h"

namespace mk {

// What one block computes of y, and with what. A warp computes m / warps_m rows of 32 columns.
struct TileF16 {
  mk_i32 m, n;              // rows and columns of y
  mk_i32 warps_m, warps_n;  // n is 32 warps_n
  mk_i32 stages;            // of operands in shared memory, kTileDepthF16 of k each
  mk_i32 blocks_per_sm;     // at least so many fit on sm_87: bounds the registers
};

// Columns of x and W that one stage holds: two steps of mma.sync m16n8k16. Rows of 64 bytes, so
// that two of them cover all banks of shared memory.
inline constexpr mk_i32 kTileDepthF16 = 32;

enum TileIndexF16 : mk_i32 { k128x128, k128x64, k64x128, k64x64, k32x64, kTileCountF16 };
inline constexpr TileF16 kTilesF16[kTileCountF16] = {
    {128, 128, 2, 4, 4, 2},  // 256 threads, 64 KB: two blocks within sm_87's 164 KB
    {128, 64, 2, 2, 4, 3},   // 128 threads, 48 KB
    {64, 128, 1, 4, 4, 3},   // 128 threads, 48 KB
    {64, 64, 2, 2, 4, 4},    // 128 threads, 32 KB
    {32, 64, 1, 2, 4, 6},    // 64 threads, 24 KB
};

// How many rows of tiles follow each other column by column, before the next ones: what they read
// of x and W stays in the L2 cache meanwhile. 8 x 128 rows of x beside as many of W are 3 MB at
// k = 768.
inline constexpr mk_i32 kTileRasterF16 = 8;

#if !defined(__CUDACC__)  // NVRTC has no host functions
constexpr mk_i32 TileThreadsF16(const TileF16& tile) { return 32 * tile.warps_m * tile.warps_n; }
constexpr mk_i32 TileSharedBytesF16(const TileF16& tile) {
  return 2 * kTileDepthF16 * (tile.m + tile.n) * tile.stages;
}

// Tiles of y, so blocks of the grid. REQUIRES m, n >= 1.
constexpr mk_i64 TileBlocksF16(const TileF16& tile, mk_i64 m, mk_i64 n) {
  return ((m + tile.m - 1) / tile.m) * ((n + tile.n - 1) / tile.n);
}

// The time that a product of m x n takes with `tile` on `sms` multiprocessors, in units of one
// multiply-add a cycle, for each of k: the SM with the most blocks decides (wave quantisation), and
// one that has few warps at a time is slower, for want of anything to hide latency with. Predicted:
// the rates behind it are estimates, to be replaced by measured ones.
double TileTimeF16(const TileF16& tile, mk_i64 m, mk_i64 n, mk_i32 sms);

// The tile with the least time; of equals the larger. REQUIRES m, n, sms >= 1.
TileIndexF16 ChooseTileF16(mk_i64 m, mk_i64 n, mk_i32 sms);
#endif

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_TILES_F16_H_
