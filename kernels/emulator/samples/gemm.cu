// C = A B on tensor cores: fp16 in and out, fp32 accumulation.
//
// Grid: (ceil(n / 64), ceil(m / 64)). Block: 128 threads, 2 x 2 warps of 32 x 32 each. Shared
// memory: two stages of A [64][32] and B [32][64], 16 KB, filled by cp.async while the other is
// multiplied. Rows are cut into chunks of 16 bytes, and a chunk's place is XORed with its row, so
// that the eight rows of an ldmatrix lie in different banks: no conflict. Each block reads its 64
// rows of A and 64 columns of B once: 2 (m k ceil(n/64) + k n ceil(m/64) + m n) bytes.
#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"
#include "kernels/emulator/samples/samples_params.h"

namespace mk {
namespace samples {
namespace {

using device::half;

constexpr int kTileM = 64, kTileN = 64, kTileK = 32;
constexpr int kThreads = 128;
constexpr int kChunk = 8;  // halves in 16 bytes
constexpr int kStages = 2;
constexpr int kStageA = kTileM * kTileK, kStageB = kTileK * kTileN;

// Where chunk `chunk` of row `row` lies: rows of A are 4 chunks (two rows share the 128 bytes of
// all banks), of B 8.
MK_DEVICE int OffsetA(int row, int chunk) {
  return row * kTileK + (chunk ^ (row / 2 % 4)) * kChunk;
}
MK_DEVICE int OffsetB(int row, int chunk) { return row * kTileN + (chunk ^ (row % 8)) * kChunk; }

MK_DEVICE void CopyTiles(const GemmParams& p, half* stage_a, half* stage_b, int row0, int col0,
                         int k0, int thread) {
  using namespace device;
  MK_UNROLL
  for (int i = thread; i < kStageA / kChunk; i += kThreads) {
    const int r = i / (kTileK / kChunk), chunk = i % (kTileK / kChunk);
    const int row = row0 + r, k = k0 + chunk * kChunk;
    const bool inside = row < p.m && k < p.k;
    CopyAsync<16>(stage_a + OffsetA(r, chunk),
                  inside ? p.a + static_cast<mk_i64>(row) * p.k + k : p.a, inside ? 16 : 0);
  }
  MK_UNROLL
  for (int i = thread; i < kStageB / kChunk; i += kThreads) {
    const int r = i / (kTileN / kChunk), chunk = i % (kTileN / kChunk);
    const int k = k0 + r, col = col0 + chunk * kChunk;
    const bool inside = k < p.k && col < p.n;
    CopyAsync<16>(stage_b + OffsetB(r, chunk),
                  inside ? p.b + static_cast<mk_i64>(k) * p.n + col : p.b, inside ? 16 : 0);
  }
}

MK_DEVICE void MultiplyTiles(const half* stage_a, const half* stage_b, int warp_m, int warp_n,
                             int lane, float (&acc)[2][4][4]) {
  using namespace device;
  MK_UNROLL
  for (int k = 0; k < kTileK / 16; ++k) {
    mk_u32 a[2][4];
    mk_u32 b[2][4];
    MK_UNROLL
    for (int i = 0; i < 2; ++i) {
      LoadMatrix(a[i], stage_a + OffsetA(warp_m * 32 + i * 16 + lane % 16, k * 2 + lane / 16));
    }
    MK_UNROLL
    for (int j = 0; j < 2; ++j) {
      LoadMatrixTransposed(b[j],
                           stage_b + OffsetB(k * 16 + lane % 16, warp_n * 4 + j * 2 + lane / 16));
    }
    MK_UNROLL
    for (int i = 0; i < 2; ++i) {
      MK_UNROLL
      for (int j = 0; j < 4; ++j) {
        const mk_u32 bj[2] = {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]};
        MmaF16(acc[i][j], a[i], bj, acc[i][j]);
      }
    }
  }
}

MK_DEVICE void StoreTile(const GemmParams& p, const float (&acc)[2][4][4], int row0, int col0,
                         int lane) {
  using namespace device;
  MK_UNROLL
  for (int i = 0; i < 2; ++i) {
    MK_UNROLL
    for (int j = 0; j < 4; ++j) {
      MK_UNROLL
      for (int h = 0; h < 2; ++h) {
        const int row = row0 + i * 16 + h * 8 + lane / 4;
        const int col = col0 + j * 8 + lane % 4 * 2;
        if (row < p.m && col < p.n) {
          Store(As<mk_u32>(p.c + static_cast<mk_i64>(row) * p.n + col),
                PackHalf2(acc[i][j][h * 2], acc[i][j][h * 2 + 1]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace samples
}  // namespace mk

extern "C" __global__ void __launch_bounds__(128) mk_sample_gemm(const mk::samples::GemmParams p) {
  using namespace mk::device;
  using namespace mk::samples;
  MK_DYNAMIC_SHARED(half, stages);
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarpSize, warp_m = thread / kWarpSize / 2,
            warp_n = thread / kWarpSize % 2;
  const int row0 = static_cast<int>(blockIdx.y) * kTileM,
            col0 = static_cast<int>(blockIdx.x) * kTileN;
  const int tiles = CeilDiv(p.k, kTileK);
  half* const stages_b = stages + kStages * kStageA;

  float acc[2][4][4] = {};
  CopyTiles(p, stages, stages_b, row0, col0, 0, thread);
  CopyAsyncCommit();
  for (int t = 0; t < tiles; ++t) {
    const int next = (t + 1) % kStages;
    if (t + 1 < tiles) {
      CopyTiles(p, stages + next * kStageA, stages_b + next * kStageB, row0, col0, (t + 1) * kTileK,
                thread);
    }
    CopyAsyncCommit();   // an empty group at the end, so that the count below stays right
    CopyAsyncWait<1>();  // tile t has landed, for this thread
    SyncThreads();       // ... and for all
    const int now = t % kStages;
    MultiplyTiles(stages + now * kStageA, stages_b + now * kStageB, warp_m, warp_n, lane, acc);
    SyncThreads();  // nobody reads this stage any more when the next turn copies over it
  }
  StoreTile(p, acc, row0 + warp_m * 32, col0 + warp_n * 32, lane);
}
