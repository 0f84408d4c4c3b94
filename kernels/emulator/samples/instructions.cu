// One kernel per instruction of ptx.h and memory.h: words in, words out. One warp where nothing
// else is said.
#include "kernels/device/device.h"
#include "kernels/device/math.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"
#include "kernels/emulator/samples/instructions_params.h"

using namespace mk::device;
using mk::samples::WordsParams;

namespace {

MK_DEVICE int Lane() { return static_cast<int>(threadIdx.x); }

template <int kWords>
MK_DEVICE void LoadWords(mk_u32 (&d)[kWords], const mk_u32* p) {
  MK_UNROLL
  for (int i = 0; i < kWords; ++i) d[i] = Load(p + i);
}

}  // namespace

// in [1], out [4]: the four shuffles with operand a and width b.
extern "C" __global__ void mk_try_shuffles(const WordsParams p) {
  const int lane = Lane();
  const mk_u32 v = Load(p.in + lane);
  Store(p.out + lane * 4 + 0, Shuffle(v, p.a, p.b));
  Store(p.out + lane * 4 + 1, ShuffleUp(v, p.a, p.b));
  Store(p.out + lane * 4 + 2, ShuffleDown(v, p.a, p.b));
  Store(p.out + lane * 4 + 3, ShuffleXor(v, p.a, p.b));
}

// in [1], out [12]; lanes whose bit in a is set.
extern "C" __global__ void mk_try_votes(const WordsParams p) {
  const int lane = Lane();
  const mk_u32 mask = static_cast<mk_u32>(p.a);
  if ((mask >> lane & 1u) == 0) return;
  const mk_u32 v = Load(p.in + lane);
  const mk_i32 s = static_cast<mk_i32>(v);
  mk_u32* out = p.out + lane * 12;
  Store(out + 0, Ballot((v & 1u) != 0, mask));
  Store(out + 1, static_cast<mk_u32>(All(v > 2, mask)));
  Store(out + 2, static_cast<mk_u32>(Any(v > 2, mask)));
  Store(out + 3, MatchAny(v % 3, mask));
  Store(out + 4, ReduceAdd(v, mask));
  Store(out + 5, ReduceMin(v, mask));
  Store(out + 6, ReduceMax(v, mask));
  Store(out + 7, static_cast<mk_u32>(ReduceMin(s, mask)));
  Store(out + 8, static_cast<mk_u32>(ReduceMax(s, mask)));
  Store(out + 9, ReduceAnd(v, mask));
  Store(out + 10, ReduceOr(v, mask));
  Store(out + 11, ReduceXor(v, mask));
}

// in [10]: a, b, c; out [4].
extern "C" __global__ void mk_try_mma(const WordsParams p) {
  mk_u32 a[4], b[2], c[4];
  LoadWords(a, p.in + Lane() * 10);
  LoadWords(b, p.in + Lane() * 10 + 4);
  LoadWords(c, p.in + Lane() * 10 + 6);
  float cf[4], d[4];
  mk_i32 ci[4], di[4];
  MK_UNROLL
  for (int i = 0; i < 4; ++i) {
    cf[i] = FloatFromBits(c[i]);
    ci[i] = static_cast<mk_i32>(c[i]);
  }
  if (p.a == 0) MmaF16(d, a, b, cf);
  if (p.a == 1) MmaBf16(d, a, b, cf);
  if (p.a == 2) MmaTf32(d, a, b, cf);
  if (p.a == 3) MmaS8(di, a, b, ci);
  MK_UNROLL
  for (int i = 0; i < 4; ++i)
    Store(p.out + Lane() * 4 + i, p.a == 3 ? static_cast<mk_u32>(di[i]) : FloatBits(d[i]));
}

// in [4]: row `lane` of four matrices; out [14]: x1, x2, x4, each plain and transposed.
extern "C" __global__ void mk_try_load_matrix(const WordsParams p) {
  MK_SHARED(mk_u32, rows, 32 * 4);
  const int lane = Lane();
  MK_UNROLL
  for (int i = 0; i < 4; ++i) Store(rows + lane * 4 + i, Load(p.in + lane * 4 + i));
  SyncWarp();
  mk_u32 one[2][1], two[2][2], four[2][4];
  LoadMatrix(one[0], rows + lane * 4);
  LoadMatrixTransposed(one[1], rows + lane * 4);
  LoadMatrix(two[0], rows + lane * 4);
  LoadMatrixTransposed(two[1], rows + lane * 4);
  LoadMatrix(four[0], rows + lane * 4);
  LoadMatrixTransposed(four[1], rows + lane * 4);
  mk_u32* out = p.out + lane * 14;
  MK_UNROLL
  for (int trans = 0; trans < 2; ++trans) {
    Store(out + trans, one[trans][0]);
    MK_UNROLL
    for (int i = 0; i < 2; ++i) Store(out + 2 + trans * 2 + i, two[trans][i]);
    MK_UNROLL
    for (int i = 0; i < 4; ++i) Store(out + 6 + trans * 4 + i, four[trans][i]);
  }
}

// in [4], out [12]: copies of 4, 8 and 16 bytes, of which a bytes (at most) are read.
extern "C" __global__ void mk_try_copy_async(const WordsParams p) {
  MK_SHARED(mk_u32, tile, 32 * 12);
  const int lane = Lane();
  mk_u32* mine = tile + lane * 12;
  MK_UNROLL
  for (int i = 0; i < 12; ++i) Store(mine + i, 7u);
  CopyAsync<4>(mine, p.in + lane * 4, Min(p.a, 4));
  CopyAsync<8>(mine + 4, p.in + lane * 4, Min(p.a, 8));
  CopyAsync<16>(mine + 8, p.in + lane * 4, p.a);
  CopyAsyncCommit();
  CopyAsyncWait<0>();
  MK_UNROLL
  for (int i = 0; i < 12; ++i) Store(p.out + lane * 12 + i, Load(mine + i));
}

// 96 threads; in [1], out [3].
extern "C" __global__ void mk_try_block_votes(const WordsParams p) {
  const int t = Lane();
  const bool holds = Load(p.in + t) != 0;
  Store(p.out + t * 3 + 0, static_cast<mk_u32>(SyncThreadsCount(holds)));
  Store(p.out + t * 3 + 1, static_cast<mk_u32>(SyncThreadsAnd(holds)));
  Store(p.out + t * 3 + 2, static_cast<mk_u32>(SyncThreadsOr(holds)));
}

// in [1]; out is [8], of all threads together, and holds zeros.
extern "C" __global__ void mk_try_atomics(const WordsParams p) {
  const mk_u32 v = Load(p.in + Lane());
  AtomicAdd(p.out + 0, v);
  AtomicMin(p.out + 1, v ^ 0xffffffffu);
  AtomicMax(p.out + 2, v);
  AtomicOr(p.out + 3, 1u << (v % 32));
  AtomicAdd(As<float>(p.out + 4), static_cast<float>(v));
  AtomicAdd(As<mk_i32>(p.out + 5), -static_cast<mk_i32>(v));
  AtomicCompareExchange(p.out + 6, 0u, v);
  AtomicExchange(p.out + 7, 5u);
}

// in [3], out [11].
extern "C" __global__ void mk_try_arithmetic(const WordsParams p) {
  const mk_u32* in = p.in + Lane() * 3;
  mk_u32* out = p.out + Lane() * 11;
  const mk_u32 a = Load(in), b = Load(in + 1), c = Load(in + 2);
  const float f = FloatFromBits(a), g = FloatFromBits(b);
  Store(out + 0, AddHalf2(a, b));
  Store(out + 1, MulHalf2(a, b));
  Store(out + 2, FmaHalf2(a, b, c));
  Store(out + 3, PackHalf2(f, g));
  Store(out + 4, PackBfloat162(f, g));
  Store(out + 5, ToTf32(f));
  Store(out + 6, static_cast<mk_u32>(ToHalf(f).bits));
  Store(out + 7, static_cast<mk_u32>(ToBfloat16(f).bits));
  Store(out + 8, FloatBits(ToFloat(half{static_cast<mk_u16>(a)})));
  Store(out + 9, FloatBits(ToFloat(bfloat16{static_cast<mk_u16>(a)})));
  Store(out + 10, static_cast<mk_u32>(LowestBit(a) * 64 + CountBits(b)));
}

// in [4], out [4]: loads and stores with hints.
extern "C" __global__ void mk_try_hints(const WordsParams p) {
  const Words4 w = LoadReadOnly(As<Words4>(p.in + Lane() * 4));
  const Words2 h = LoadReadOnly(As<Words2>(p.in + Lane() * 4));
  StoreStreaming(As<Words4>(p.out + Lane() * 4),
                 Words4{{w.word[3], w.word[2], h.word[1], h.word[0]}});
}

// in [1], out [7]: elementary functions of a float.
extern "C" __global__ void mk_try_math(const WordsParams p) {
  const float x = FloatFromBits(Load(p.in + Lane()));
  const float y[7] = {Exp(x), Log(x), Log1p(x), Erf(x), Tanh(x), Abs(x), Floor(x)};
  MK_UNROLL
  for (int i = 0; i < 7; ++i) Store(p.out + Lane() * 7 + i, FloatBits(y[i]));
}
