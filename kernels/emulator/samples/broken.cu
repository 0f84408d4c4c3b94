// Kernels that are wrong on purpose, one for each detector, and some that are right where a
// detector might be too eager. Blocks of 64 threads where nothing else is said; one block.
#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"
#include "kernels/emulator/samples/samples_params.h"

using namespace mk::device;
using mk::samples::BrokenParams;

namespace {

constexpr int kThreads = 64;

MK_DEVICE int ThreadInBlock() { return static_cast<int>(threadIdx.x); }

}  // namespace

// ---- Races

extern "C" __global__ void mk_broken_missing_barrier(const BrokenParams p) {
  MK_SHARED(float, tile, kThreads);
  const int t = ThreadInBlock();
  Store(tile + t, Load(p.x + t));
  // No SyncThreads.
  Store(p.y + t, Load(tile + kThreads - 1 - t));
}

extern "C" __global__ void mk_broken_missing_trailing_barrier(const BrokenParams p) {
  MK_SHARED(float, tile, kThreads);
  const int t = ThreadInBlock();
  for (int i = 0; i < 3; ++i) {
    Store(tile + t, Load(p.x + i * kThreads + t));
    SyncThreads();
    Store(p.y + i * kThreads + t, Load(tile + kThreads - 1 - t));
    // No SyncThreads before the next turn writes.
  }
}

extern "C" __global__ void mk_broken_missing_warp_sync(const BrokenParams p) {
  MK_SHARED(float, tile, kThreads);
  const int t = ThreadInBlock();
  Store(tile + t, Load(p.x + t));
  Store(p.y + t, Load(tile + (t ^ 1)));  // the neighbour of the same warp
}

extern "C" __global__ void mk_right_warp_sync(const BrokenParams p) {
  MK_SHARED(float, tile, kThreads);
  const int t = ThreadInBlock();
  Store(tile + t, Load(p.x + t));
  SyncWarp();
  Store(p.y + t, Load(tile + (t ^ 1)));
}

extern "C" __global__ void mk_broken_warp_sync_across_warps(const BrokenParams p) {
  MK_SHARED(float, tile, kThreads);
  const int t = ThreadInBlock();
  Store(tile + t, Load(p.x + t));
  SyncWarp();
  Store(p.y + t, Load(tile + (t ^ 32)));
}

extern "C" __global__ void mk_broken_plain_beside_atomic(const BrokenParams p) {
  MK_SHARED(float, sum, 1);
  const int t = ThreadInBlock();
  if (t == 0) Store(sum, 0.0f);
  SyncThreads();
  AtomicAdd(sum, Load(p.x + t));
  if (t == 0) Store(p.y, Load(sum));  // others may still add
}

extern "C" __global__ void mk_broken_bytes_overlap(const BrokenParams p) {
  MK_SHARED(mk_u16, tile, kThreads + 1);
  const int t = ThreadInBlock();
  Store(tile + t, static_cast<mk_u16>(t));
  if (t == 0)
    Store(tile + 1, mk_u16{7});  // thread 1's; the other half of thread 0's word is its own
  Store(p.y + t, 0.0f);
}

extern "C" __global__ void mk_right_halves_of_a_word(const BrokenParams p) {
  MK_SHARED(mk_u16, tile, kThreads);
  const int t = ThreadInBlock();
  Store(tile + t, static_cast<mk_u16>(t));
  SyncThreads();
  Store(p.y + t, static_cast<float>(Load(tile + (t ^ 1))));
}

// One block after another writes the same word.
extern "C" __global__ void mk_broken_blocks_share_a_word(const BrokenParams p) {
  if (ThreadInBlock() == 0) Store(p.y, static_cast<float>(blockIdx.x));
}

// The last block to count reads what the others stored, but nobody published it.
extern "C" __global__ void mk_broken_last_block_without_fence(const BrokenParams p) {
  if (ThreadInBlock() != 0) return;
  Store(p.y + 1 + blockIdx.x, Load(p.x + blockIdx.x));
  const mk_u32 before = AtomicAdd(As<mk_u32>(p.y), 1u);
  if (before + 1 != gridDim.x) return;
  float sum = 0.0f;
  for (int i = 0; i < static_cast<int>(gridDim.x); ++i) sum += Load(p.y + 1 + i);
  Store(p.y + 1, sum);
}

// Warp 0 fills for warp 1, by named barriers: full (1) and empty (2).
extern "C" __global__ void mk_right_named_barriers(const BrokenParams p) {
  MK_SHARED(float, tile, 32);
  const int lane = ThreadInBlock() % 32;
  for (int i = 0; i < 4; ++i) {
    if (ThreadInBlock() < 32) {
      if (i > 0) BarrierSync(2, kThreads);
      Store(tile + lane, Load(p.x + i * 32 + lane));
      BarrierArrive(1, kThreads);
    } else {
      BarrierSync(1, kThreads);
      Store(p.y + i * 32 + lane, Load(tile + 31 - lane));
      if (i < 3) BarrierArrive(2, kThreads);
    }
  }
}

extern "C" __global__ void mk_broken_named_barriers(const BrokenParams p) {
  MK_SHARED(float, tile, 32);
  const int lane = ThreadInBlock() % 32;
  for (int i = 0; i < 2; ++i) {
    if (ThreadInBlock() < 32) {
      Store(tile + lane, Load(p.x + i * 32 + lane));  // does not wait until it is empty
      BarrierArrive(1, kThreads);
    } else {
      BarrierSync(1, kThreads);
      Store(p.y + i * 32 + lane, Load(tile + 31 - lane));
    }
  }
}

// ---- Asynchronous copies

extern "C" __global__ void mk_broken_missing_wait(const BrokenParams p) {
  MK_SHARED(float, tile, kThreads);
  const int t = ThreadInBlock();
  CopyAsync<4>(tile + t, p.x + t);
  CopyAsyncCommit();
  SyncThreads();
  Store(p.y + t, Load(tile + t));
}

extern "C" __global__ void mk_broken_wait_for_too_few(const BrokenParams p) {
  MK_SHARED(float, tile, kThreads);
  const int t = ThreadInBlock();
  CopyAsync<4>(tile + t, p.x + t);
  CopyAsyncCommit();
  CopyAsyncWait<1>();  // the newest group may still be under way, and it is the one
  SyncThreads();
  Store(p.y + t, Load(tile + t));
}

extern "C" __global__ void mk_broken_missing_commit(const BrokenParams p) {
  MK_SHARED(float, tile, kThreads);
  const int t = ThreadInBlock();
  CopyAsync<4>(tile + t, p.x + t);
  CopyAsyncWait<0>();  // waits for groups that were committed: there is none
  SyncThreads();
  Store(p.y + t, Load(tile + t));
}

extern "C" __global__ void mk_broken_wait_without_barrier(const BrokenParams p) {
  MK_SHARED(float, tile, kThreads);
  const int t = ThreadInBlock();
  CopyAsync<4>(tile + t, p.x + t);
  CopyAsyncCommit();
  CopyAsyncWait<0>();
  Store(p.y + t, Load(tile + kThreads - 1 - t));
}

// ---- Divergence, deadlock, masks

extern "C" __global__ void mk_broken_shuffle_in_branch(const BrokenParams p) {
  const int t = ThreadInBlock();
  float v = Load(p.x + t);
  if (t % 32 < 16) {
    v = ShuffleXor(v, 1);  // names all 32 lanes
  } else {
    SyncWarp();
  }
  Store(p.y + t, v);
}

extern "C" __global__ void mk_right_shuffle_in_branch(const BrokenParams p) {
  const int t = ThreadInBlock();
  float v = Load(p.x + t);
  if (t % 32 < 16) {
    v = ShuffleXor(v, 1, 32, 0x0000ffffu);
  } else {
    v = ShuffleXor(v, 2, 32, 0xffff0000u);
  }
  Store(p.y + t, v);
}

extern "C" __global__ void mk_broken_barrier_in_branch(const BrokenParams p) {
  if (ThreadInBlock() < 32) {
    SyncThreads();
  } else {
    SyncThreads();  // another one
  }
  Store(p.y + ThreadInBlock(), 0.0f);
}

extern "C" __global__ void mk_right_early_exit(const BrokenParams p) {
  if (ThreadInBlock() >= 40) return;
  SyncThreads();
  Store(p.y + ThreadInBlock(), 0.0f);
}

extern "C" __global__ void mk_broken_deadlock(const BrokenParams p) {
  if (ThreadInBlock() < 32) BarrierSync(1, kThreads);  // 32 threads will not come
  Store(p.y + ThreadInBlock(), 0.0f);
}

extern "C" __global__ void mk_broken_lane_waits_elsewhere(const BrokenParams p) {
  const int t = ThreadInBlock();
  if (t == 5) SyncThreads();
  Store(p.y + t, ShuffleXor(Load(p.x + t), 1));
  if (t != 5) SyncThreads();
}

extern "C" __global__ void mk_broken_source_lane(const BrokenParams p) {
  const int t = ThreadInBlock();
  if (t % 32 >= 16) return;
  Store(p.y + t, Shuffle(Load(p.x + t), 20));
}

extern "C" __global__ void mk_broken_own_mask(const BrokenParams p) {
  const int t = ThreadInBlock();
  Store(p.y + t, ShuffleXor(Load(p.x + t), 1, 32, 0x7fffffffu));  // lane 31 is not named
}

extern "C" __global__ void mk_broken_spin(const BrokenParams p) {
  if (ThreadInBlock() != 0) return;
  while (Load(p.x) >= 0.0f) {
  }
}

// ---- Memory

extern "C" __global__ void mk_broken_uninitialised_shared(const BrokenParams p) {
  MK_SHARED(float, tile, kThreads);
  const int t = ThreadInBlock();
  if (t != 7) Store(tile + t, Load(p.x + t));
  SyncThreads();
  Store(p.y + t, Load(tile + t));
}

extern "C" __global__ void mk_broken_uninitialised_global(const BrokenParams p) {
  const int t = ThreadInBlock();
  Store(p.y + t, Load(p.y + t) + 1.0f);
}

extern "C" __global__ void mk_broken_shared_bounds(const BrokenParams p) {
  MK_SHARED(float, tile, kThreads);
  MK_SHARED(float, other, kThreads);
  const int t = ThreadInBlock();
  Store(other + t, 0.0f);
  Store(tile + t + 1, Load(p.x + t));  // the last one is beyond
  SyncThreads();
  Store(p.y + t, Load(other + t));
}

extern "C" __global__ void mk_broken_global_bounds(const BrokenParams p) {
  const int t = ThreadInBlock();
  Store(p.y + t, Load(p.x + p.n + t));
}

extern "C" __global__ void mk_broken_alignment(const BrokenParams p) {
  const Float4 v = Load(As<Float4>(p.x + 1));
  Store(p.y + ThreadInBlock(), v.x);
}

extern "C" __global__ void mk_broken_writes_input(const BrokenParams p) {
  Store(const_cast<float*>(p.x) + ThreadInBlock(), 0.0f);
}

extern "C" __global__ void mk_broken_follows_pointer(const BrokenParams p) {
  Store(p.y + ThreadInBlock(), p.x[ThreadInBlock()]);  // around the accessors
}

extern "C" __global__ void mk_broken_matrix_of_global(const BrokenParams p) {
  mk_u32 d[1];
  LoadMatrix(d, p.x + ThreadInBlock() % 8 * 4);
  Store(p.y + ThreadInBlock(), FloatFromBits(d[0]));
}

extern "C" __global__ void mk_broken_too_much_shared(const BrokenParams p) {
  MK_SHARED(float, tile, 12 * 1024 + 1);
  Store(tile, Load(p.x));
}

extern "C" __global__ void mk_broken_assertion(const BrokenParams p) {
  MK_DEVICE_CHECK(p.n < 0);
  Store(p.y + ThreadInBlock(), 0.0f);
}

// ---- Counts

// Column reads of a tile of 32 words a row: every lane in the same bank.
extern "C" __global__ void mk_count_bank_conflicts(const BrokenParams p) {
  MK_SHARED(float, tile, 32 * 32);
  const int t = ThreadInBlock();
  for (int i = 0; i < 32; ++i) Store(tile + i * 32 + t, Load(p.x + t));
  SyncThreads();
  float sum = 0.0f;
  for (int i = 0; i < 32; ++i) sum += Load(tile + t * 32 + i);
  Store(p.y + t, sum);
}

// Every lane in a sector of its own.
extern "C" __global__ void mk_count_sectors(const BrokenParams p) {
  const int t = ThreadInBlock();
  Store(p.y + t, Load(p.x + t * 8));
}
