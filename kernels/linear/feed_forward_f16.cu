// The second half of a block, x += W2 act(W1 LN(x) + b1) + b2, in one launch: feed_forward_f16.h.
//
// Grid: ceil(rows / kM). Block: 4 warps, each with rows of its own and all channels of them. x
// comes in once and stays: as fragments, normalised, in registers, and as it was in shared memory
// for the sum at the end. The hidden layer goes by 32 at a time and never leaves the registers:
// what mma.sync leaves as sums of one product is what it wants as the left fragments of the next.
// Weights stream through stages by cp.async, read by every block from L2.
//
//   kChannels 96:  128 rows, 32 per warp; 24 KB of x, 3 stages of 12 KB
//   kChannels 192:  64 rows, 16 per warp; 24 KB of x, 2 stages of 24 KB
//
// so that two blocks fit an SM of sm_87 in registers and shared memory. Fewer channels are padded
// with zeros. Moves 2 (2 rows channels) bytes of x, and 4 channels hidden of weights a block; the
// hidden layer would have been another 4 rows hidden.
#include "kernels/linear/epilogue_f16.h"
#include "kernels/linear/feed_forward_f16_params.h"
#include "kernels/linear/matmul_f16.h"

namespace mk {
namespace device {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kDepth = kTileDepthF16;  // of hidden at a time, and of channels in a part

template <int kMaxChannels, int kFragments, int kWeightStages>
struct Block {
  static constexpr int kChannels = kMaxChannels;
  static constexpr int kRowFragments = kFragments;  // of 16 rows, per warp
  static constexpr int kWarpM = 16 * kFragments, kM = kWarps * kWarpM;
  static constexpr int kStages = kWeightStages;
  static constexpr int kParts = kChannels / kDepth;  // of x's channels
  static constexpr int kPartX = kM * kDepth;         // halves
  static constexpr int kPartW1 = kDepth * kDepth;
  static constexpr int kStageW1 = kParts * kPartW1, kStageW2 = kChannels * kDepth;
};

// A warp's rows of x as left fragments, 16 channels each.
template <class B>
using Rows = mk_u32[B::kRowFragments][B::kChannels / 16][4];
template <class B>
using Sums = float[B::kRowFragments][B::kChannels / 8][4];

MK_DEVICE float Low(mk_u32 pair) { return ToFloat(half{static_cast<mk_u16>(pair)}); }
MK_DEVICE float High(mk_u32 pair) { return ToFloat(half{static_cast<mk_u16>(pair >> 16)}); }

// The channel of word `w` of fragment `f`: words 0 and 1 have the first eight, 2 and 3 the others.
MK_DEVICE int ChannelOf(int f, int w, int lane) { return f * 16 + w / 2 * 8 + lane % 4 * 2; }

// (x - mean) rstd for rows lane / 4 + 8 h of one fragment row, rounded to fp16 again.
template <class B>
MK_DEVICE void NormaliseRow(mk_u32 (&x)[B::kChannels / 16][4], int h, int channels, float epsilon,
                            int lane) {
  const float inverse = 1.0f / static_cast<float>(channels);
  float sum = 0.0f;
  MK_UNROLL
  for (int f = 0; f < B::kChannels / 16; ++f) {
    MK_UNROLL
    for (int w = h; w < 4; w += 2) sum += Low(x[f][w]) + High(x[f][w]);  // zeros past the last
  }
  const float mean = WarpSum<4>(sum) * inverse;
  float m2 = 0.0f;
  MK_UNROLL
  for (int f = 0; f < B::kChannels / 16; ++f) {
    MK_UNROLL
    for (int w = h; w < 4; w += 2) {
      const float low = Low(x[f][w]) - mean, high = High(x[f][w]) - mean;
      const bool inside = ChannelOf(f, w, lane) < channels;  // channels are even
      m2 += inside ? low * low + high * high : 0.0f;
    }
  }
  const float rstd = 1.0f / Sqrt(WarpSum<4>(m2) * inverse + epsilon);
  MK_UNROLL
  for (int f = 0; f < B::kChannels / 16; ++f) {
    MK_UNROLL
    for (int w = h; w < 4; w += 2) {
      // Zeros past the last channel: mean rstd may be infinite, and times W's zeros is NaN then.
      const bool inside = ChannelOf(f, w, lane) < channels;
      const mk_u32 pair = PackHalf2((Low(x[f][w]) - mean) * rstd, (High(x[f][w]) - mean) * rstd);
      x[f][w] = inside ? pair : 0;
    }
  }
}

template <class B>
MK_DEVICE void LoadRows(const half* tile, const FeedForwardF16Params& p, int warp, int lane,
                        Rows<B>& x) {
  MK_UNROLL
  for (int i = 0; i < B::kRowFragments; ++i) {
    MK_UNROLL
    for (int f = 0; f < B::kChannels / 16; ++f) {
      LoadFragmentA(x[i][f], tile + f / 2 * B::kPartX, warp * B::kWarpM + i * 16, f % 2, lane);
    }
    NormaliseRow<B>(x[i], 0, static_cast<int>(p.channels), p.epsilon, lane);
    NormaliseRow<B>(x[i], 1, static_cast<int>(p.channels), p.epsilon, lane);
  }
}

// Hidden units hidden0 .. hidden0 + 31 of the warp's rows, as left fragments of the next product.
template <class B>
MK_DEVICE void HiddenLayer(const FeedForwardF16Params& p, const half* w1, const Rows<B>& x,
                           int hidden0, int lane, mk_u32 (&out)[B::kRowFragments][2][4]) {
  float sums[B::kRowFragments][kDepth / 8][4] = {};
  MK_UNROLL
  for (int f = 0; f < B::kChannels / 16; ++f) {
    MK_UNROLL
    for (int j = 0; j < kDepth / 16; ++j) {
      mk_u32 b[4];
      LoadFragmentsB(b, w1 + f / 2 * B::kPartW1, j * 16, f % 2, lane);
      MK_UNROLL
      for (int i = 0; i < B::kRowFragments; ++i) {
        MmaF16(sums[i][j * 2], x[i][f], {b[0], b[1]}, sums[i][j * 2]);
        MmaF16(sums[i][j * 2 + 1], x[i][f], {b[2], b[3]}, sums[i][j * 2 + 1]);
      }
    }
  }
  float bias[kDepth / 8][2];
  MK_UNROLL
  for (int j = 0; j < kDepth / 8; ++j) {
    const int h = hidden0 + j * 8 + lane % 4 * 2;  // hidden is even
    bias[j][0] = h < p.hidden ? Load(p.bias1 + h) : 0.0f;
    bias[j][1] = h < p.hidden ? Load(p.bias1 + h + 1) : 0.0f;
  }
  MK_UNROLL
  for (int i = 0; i < B::kRowFragments; ++i) {
    float v[kDepth / 2];
    MK_UNROLL
    for (int e = 0; e < kDepth / 2; ++e) v[e] = sums[i][e / 4][e % 4] + bias[e / 4][e % 2];
    Activate(p.activation, v);
    MK_UNROLL
    for (int e = 0; e < 8; ++e) out[i][e / 4][e % 4] = PackHalf2(v[e * 2], v[e * 2 + 1]);
  }
}

// x + sums + bias2, rounded, where x was in shared memory; then out by 16 bytes.
template <class B>
MK_DEVICE void AddAndStore(const FeedForwardF16Params& p, half* tile, const Sums<B>& sums,
                           mk_i64 row0, int warp, int lane) {
  const int channels = static_cast<int>(p.channels);
  MK_UNROLL
  for (int j = 0; j < B::kChannels / 8; ++j) {
    const int c = j * 8 + lane % 4 * 2;
    const bool bias = p.bias2 != nullptr && c < channels;
    const float low = bias ? Load(p.bias2 + c) : 0.0f, high = bias ? Load(p.bias2 + c + 1) : 0.0f;
    MK_UNROLL
    for (int ih = 0; ih < 2 * B::kRowFragments; ++ih) {
      const int row = warp * B::kWarpM + ih * 8 + lane / 4;
      mk_u32* at = As<mk_u32>(tile + j / 4 * B::kPartX + ChunkOffset(row, j % 4) + lane % 4 * 2);
      const mk_u32 x = Load(at);
      const float* sum = sums[ih / 2][j] + ih % 2 * 2;
      Store(at, PackHalf2(Low(x) + (sum[0] + low), High(x) + (sum[1] + high)));
    }
  }
  SyncWarp();  // rows go out by other lanes than wrote them
  const int chunk = lane % 4;
  MK_NO_UNROLL
  for (int r = warp * B::kWarpM + lane / 4; r < (warp + 1) * B::kWarpM; r += 8) {
    const mk_i64 row = row0 + r;
    for (int part = 0; part * kDepth < channels; ++part) {
      const int c = part * kDepth + chunk * kChunkF16;
      const bool inside = row < p.rows && c < channels;
      const Words4 words = Load(As<Words4>(tile + part * B::kPartX + ChunkOffset(r, chunk)));
      if (inside) Store(As<Words4>(p.x + row * channels + c), words);
      if (p.x_stats == nullptr) continue;
      float v[kChunkF16];
      MK_UNROLL
      for (int e = 0; e < kChunkF16; ++e) v[e] = HalfOf(words, e);
      const int groups = CeilDiv(channels, kStatsGroup);
      StoreStats(p.x_stats + row * groups + part, v, c < channels ? kChunkF16 : 0,
                 Min(channels - part * kDepth, kStatsGroup), row < p.rows, lane);
    }
  }
}

template <class B>
MK_DEVICE void LoadWeights(const FeedForwardF16Params& p, half* stage, int hidden0, int thread) {
  const int channels = static_cast<int>(p.channels);
  RowLoader<kDepth, kThreads, true> w1(p.weight1, hidden0, p.hidden, channels, thread);
  RowLoader<B::kChannels, kThreads, true> w2(p.weight2, 0, p.channels, static_cast<int>(p.hidden),
                                             thread);
  MK_UNROLL
  for (int part = 0; part < B::kParts; ++part) w1.Copy(stage + part * B::kPartW1, part * kDepth);
  w2.Copy(stage + B::kStageW1, hidden0);
}

template <class B>
MK_DEVICE void FeedForward(const FeedForwardF16Params& p) {
  constexpr int kStage = B::kStageW1 + B::kStageW2, kAhead = B::kStages - 1;
  MK_DYNAMIC_SHARED(half, tile);  // x, then the stages
  half* const stages = tile + B::kParts * B::kPartX;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarpSize, warp = thread / kWarpSize;
  const mk_i64 row0 = static_cast<mk_i64>(blockIdx.x) * B::kM;
  const int count = static_cast<int>(CeilDiv<mk_i64>(p.hidden, kDepth));

  RowLoader<B::kM, kThreads, true> load_x(p.x, row0, p.rows, static_cast<int>(p.channels), thread);
  MK_UNROLL
  for (int part = 0; part < B::kParts; ++part) {
    load_x.Copy(tile + part * B::kPartX, part * kDepth);
  }
  CopyAsyncCommit();
  MK_UNROLL
  for (int t = 0; t < kAhead; ++t) {
    if (t < count) LoadWeights<B>(p, stages + t * kStage, t * kDepth, thread);
    CopyAsyncCommit();  // empty where hidden is short: the waits below count groups
  }
  CopyAsyncWait<kAhead>();  // this thread's part of x is there
  SyncThreads();            // and everybody's
  Rows<B> x;
  LoadRows<B>(tile, p, warp, lane, x);

  Sums<B> sums = {};
  int current = 0, filled = kAhead;  // stages
  MK_NO_UNROLL
  for (int t = 0; t < count; ++t) {
    CopyAsyncWait<kAhead - 1>();  // this thread's copies of stage t are done
    SyncThreads();  // and everybody's; and all are done with stage t - 1, which is filled anew now
    if (t + kAhead < count) {
      LoadWeights<B>(p, stages + filled * kStage, (t + kAhead) * kDepth, thread);
    }
    CopyAsyncCommit();
    const half* stage = stages + current * kStage;
    mk_u32 hidden[B::kRowFragments][2][4];
    HiddenLayer<B>(p, stage, x, t * kDepth, lane, hidden);
    MK_UNROLL
    for (int step = 0; step < 2; ++step) {
      MK_UNROLL
      for (int j = 0; j < B::kChannels / 16; ++j) {
        mk_u32 b[4];
        LoadFragmentsB(b, stage + B::kStageW1, j * 16, step, lane);
        MK_UNROLL
        for (int i = 0; i < B::kRowFragments; ++i) {
          MmaF16(sums[i][j * 2], hidden[i][step], {b[0], b[1]}, sums[i][j * 2]);
          MmaF16(sums[i][j * 2 + 1], hidden[i][step], {b[2], b[3]}, sums[i][j * 2 + 1]);
        }
      }
    }
    current = current + 1 == B::kStages ? 0 : current + 1;
    filled = filled + 1 == B::kStages ? 0 : filled + 1;
  }
  AddAndStore<B>(p, tile, sums, row0, warp, lane);
}

}  // namespace
}  // namespace device
}  // namespace mk

extern "C" __global__ void __launch_bounds__(128, 2)
    mk_feed_forward_f16_96(const mk::FeedForwardF16Params p) {
  mk::device::FeedForward<mk::device::Block<96, 2, 3>>(p);
}

extern "C" __global__ void __launch_bounds__(128, 2)
    mk_feed_forward_f16_192(const mk::FeedForwardF16Params p) {
  mk::device::FeedForward<mk::device::Block<192, 1, 2>>(p);
}
