// The main loop of matrix products on tensor cores: sum[i, j] = sum_p A[i, p] B[j, p] for one tile
// of y, fp16 operands, fp32 sums; device code that LinearF16 and the convolutions share. They
// differ in how rows of A come in: a loader.
//
// Both operands lie in shared memory as rows of kTileDepthF16 halves, four chunks of 16 bytes, in
// kStages stages. cp.async fills stage t + kStages - 1 while tensor cores work on stage t. A
// chunk's place is XORed with its row, so that the eight rows of an ldmatrix, and the eight lanes
// that write 128 bytes, are in different banks.
//
// A loader is made per thread and has
//   void Copy(half* stage, int k0)   // this thread's chunks of columns k0 .. k0 + 31, into `stage`
// called for k0 = 0, 32, 64, ... in this order. kAsync says that it uses cp.async.
//
// Source: ours.
#ifndef MERGEKERNEL_KERNELS_LINEAR_MATMUL_F16_H_
#define MERGEKERNEL_KERNELS_LINEAR_MATMUL_F16_H_

#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"
#include "kernels/linear/load_f16.h"
#include "kernels/linear/tiles_f16.h"

namespace mk {
namespace device {

inline constexpr int kRowChunksF16 = kTileDepthF16 / kChunkF16;  // 4

// The numbers of kTilesF16[kIndex], and what follows from them.
template <int kIndex>
struct MatmulTile {
  static constexpr int kM = kTilesF16[kIndex].m, kN = kTilesF16[kIndex].n;
  static constexpr int kWarpsM = kTilesF16[kIndex].warps_m, kWarpsN = kTilesF16[kIndex].warps_n;
  static constexpr int kStages = kTilesF16[kIndex].stages;
  static constexpr int kBlocksPerSm = kTilesF16[kIndex].blocks_per_sm;
  static constexpr int kThreads = kWarpSize * kWarpsM * kWarpsN;
  static constexpr int kWarpM = kM / kWarpsM, kWarpN = 32;
  static constexpr int kRowsOfFragments = kWarpM / 16, kColumnsOfFragments = kWarpN / 8;
  static constexpr int kStageA = kM * kTileDepthF16, kStageB = kN * kTileDepthF16;
  static constexpr int kStage = kStageA + kStageB;  // halves
  static_assert(kN == kWarpN * kWarpsN && kM % (16 * kWarpsM) == 0, "warps tile the block");
  static_assert(kM * kN * 4 <= kStages * kStage * 2, "the sums fit where the stages were");
};

// A thread's part of the sums: [row of 16][column of 8][fragment of mma.sync].
template <class Tile>
using MatmulSums = float[Tile::kRowsOfFragments][Tile::kColumnsOfFragments][4];

// Where chunk `chunk` of row `row` of a stage lies, in halves. Two rows share the 128 bytes of all
// banks.
MK_DEVICE int ChunkOffset(int row, int chunk) {
  return row * kTileDepthF16 + (chunk ^ (row / 2 % 4)) * kChunkF16;
}

// Loads kRows rows of a dense matrix; those past its end, and columns past k, are zeros. kVector:
// by 16 bytes; REQUIRES that k is a multiple of 8 and the matrix is aligned to 16 bytes.
template <int kRows, int kThreads, bool kVector>
class RowLoader {
 public:
  static constexpr bool kAsync = kVector;

  // Rows row0, ... of `matrix` of `rows` rows.
  MK_DEVICE RowLoader(const half* matrix, mk_i64 row0, mk_i64 rows, int k, int thread)
      : matrix_(matrix),
        row_(thread / kRowChunksF16),
        chunk_(thread % kRowChunksF16),
        rows_(static_cast<int>(Min<mk_i64>(rows - row0, kRows))),
        k_(k),
        first_(matrix + (row0 + row_) * k + chunk_ * kChunkF16) {}

  MK_DEVICE void Copy(half* stage, int k0) {
    const int k_left = k_ - k0 - chunk_ * kChunkF16;
    MK_UNROLL
    for (int i = 0; i < kRows / kRowStep; ++i) {
      const int row = row_ + i * kRowStep;
      const bool inside = row < rows_ && k_left > 0;
      const half* from = first_ + static_cast<mk_i64>(i) * kRowStep * k_ + k0;
      half* to = stage + ChunkOffset(row, chunk_);
      if constexpr (kVector) {
        CopyAsync<16>(to, inside ? from : matrix_, inside ? 16 : 0);
      } else {
        Store(As<Words4>(to), LoadHalves(from, inside ? k_left : 0));
      }
    }
  }

 private:
  static constexpr int kRowStep = kThreads / kRowChunksF16;
  static_assert(kRows % kRowStep == 0 && kRowStep % 8 == 0, "each thread has as many rows");

  const half* matrix_;
  int row_, chunk_, rows_, k_;
  const half* first_;
};

// Fragments of mma.sync m16n8k16 from 32 columns in shared memory: of A 16 rows from `row` on, of B
// two times 8. `step` is 0 or 1: which 16 of the columns.
MK_DEVICE void LoadFragmentA(mk_u32 (&a)[4], const half* stage, int row, int step,
                             int lane MK_SITE) {
  LoadMatrix(a, stage + ChunkOffset(row + lane % 16, step * 2 + lane / 16) MK_PASS_SITE);
}
MK_DEVICE void LoadFragmentsB(mk_u32 (&b)[4], const half* stage, int row, int step,
                              int lane MK_SITE) {
  const int at = row + lane / 16 * 8 + lane % 8;
  LoadMatrix(b, stage + ChunkOffset(at, step * 2 + lane / 8 % 2) MK_PASS_SITE);
}

// One stage's products into a warp's sums. `a` and `b` are the warp's first rows of the stage.
template <class Tile>
MK_DEVICE void MultiplyStage(const half* a, const half* b, int lane, MatmulSums<Tile>& sums) {
  MK_UNROLL
  for (int step = 0; step < kTileDepthF16 / 16; ++step) {
    mk_u32 a_fragments[Tile::kRowsOfFragments][4];
    mk_u32 b_fragments[Tile::kColumnsOfFragments / 2][4];  // of two columns of 8
    MK_UNROLL
    for (int i = 0; i < Tile::kRowsOfFragments; ++i) {
      LoadFragmentA(a_fragments[i], a, i * 16, step, lane);
    }
    MK_UNROLL
    for (int j = 0; j < Tile::kColumnsOfFragments / 2; ++j) {
      LoadFragmentsB(b_fragments[j], b, j * 16, step, lane);
    }
    MK_UNROLL
    for (int i = 0; i < Tile::kRowsOfFragments; ++i) {
      MK_UNROLL
      for (int j = 0; j < Tile::kColumnsOfFragments; ++j) {
        const mk_u32 bj[2] = {b_fragments[j / 2][j % 2 * 2], b_fragments[j / 2][j % 2 * 2 + 1]};
        MmaF16(sums[i][j], a_fragments[i], bj, sums[i][j]);
      }
    }
  }
}

// All of k. `stages` is Tile::kStages * Tile::kStage halves of shared memory, aligned to 128 bytes.
template <class Tile, class LoaderA, class LoaderB>
MK_DEVICE void Multiply(LoaderA& load_a, LoaderB& load_b, int k, half* stages, int thread,
                        MatmulSums<Tile>& sums) {
  constexpr int kAhead = Tile::kStages - 1;
  constexpr bool kAsync = LoaderA::kAsync || LoaderB::kAsync;
  const int lane = thread % kWarpSize, warp = thread / kWarpSize;
  const int warp_a = warp / Tile::kWarpsN * Tile::kWarpM * kTileDepthF16;
  const int warp_b = Tile::kStageA + warp % Tile::kWarpsN * Tile::kWarpN * kTileDepthF16;
  const int count = CeilDiv(k, kTileDepthF16);

  MK_UNROLL
  for (int t = 0; t < kAhead; ++t) {
    half* stage = stages + t * Tile::kStage;
    if (t < count) {
      load_a.Copy(stage, t * kTileDepthF16);
      load_b.Copy(stage + Tile::kStageA, t * kTileDepthF16);
    }
    if constexpr (kAsync)
      CopyAsyncCommit();  // empty where k is short: the waits below count groups
  }
  int current = 0, filled = kAhead;  // stages
  MK_NO_UNROLL
  for (int t = 0; t < count; ++t) {
    if constexpr (kAsync) CopyAsyncWait<kAhead - 1>();  // this thread's copies of stage t are done
    SyncThreads();  // and everybody's; and all are done with stage t - 1, which is filled anew now
    if (t + kAhead < count) {
      half* stage = stages + filled * Tile::kStage;
      load_a.Copy(stage, (t + kAhead) * kTileDepthF16);
      load_b.Copy(stage + Tile::kStageA, (t + kAhead) * kTileDepthF16);
    }
    if constexpr (kAsync) CopyAsyncCommit();
    const half* stage = stages + current * Tile::kStage;
    MultiplyStage<Tile>(stage + warp_a, stage + warp_b, lane, sums);
    current = current + 1 == Tile::kStages ? 0 : current + 1;
    filled = filled + 1 == Tile::kStages ? 0 : filled + 1;
  }
}

// The tile of y that a block computes. Blocks go down kTileRasterF16 rows of tiles, column by
// column.
template <class Tile>
struct TilePlace {
  mk_i64 row;
  int column;

  // REQUIRES fewer than 2^31 tiles.
  MK_DEVICE static TilePlace Of(int block, mk_i64 m, mk_i64 n) {
    const int rows = static_cast<int>(CeilDiv<mk_i64>(m, Tile::kM));
    const int columns = static_cast<int>(CeilDiv<mk_i64>(n, Tile::kN));
    const int band = block / (kTileRasterF16 * columns);
    const int band_rows = Min(rows - band * kTileRasterF16, kTileRasterF16);
    const int place = block - band * kTileRasterF16 * columns;
    return {static_cast<mk_i64>(band * kTileRasterF16 + place % band_rows) * Tile::kM,
            place / band_rows * Tile::kN};
  }
};

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_MATMUL_F16_H_
