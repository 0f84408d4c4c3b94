// The selective scan of a map along four directions, merged, normed and gated.
//
// A warp owns 32 channels, one a lane, and a line of a tile: a row or a column of up to 32 tokens
// (16 or 8 with more than one state), walked one token after the other with the state in a
// register. A block owns a tile and one or several slices of 32 channels, with a warp for each
// line of each slice: first it walks all columns, down and up, then all rows, right and left. What
// the four directions give is added up in fp32 in shared memory [token][channel], and goes out with
// the skip, a token a warp.
//
// The step of a token needs a product with dt_weight: that is done on tensor cores, for 8 tokens
// and 32 channels at a time, transposed (channels are the rows), from where four shuffles between
// the four lanes of a row bring a lane the 8 tokens of one channel. So lane l owns channel
// l / 4 + 8 (l % 4) of its slice.
//
// Where a line starts from another line's end:
//   output  a map of one tile, with a single state: each warp first walks its line for the end it
//           would have from 0 and the sum of its steps, puts both into shared memory, and makes its
//           start of those of the lines before it. One launch.
//   ends, carry, output   else the same by way of device memory. `ends` walks the segments of each
//           tile, `carry` goes over all segments of the map: a block for one direction, state and
//           slice, whose 16 warps take a stretch each.
// A norm needs all channels of a token: of the blocks that share a tile the last one norms it, in
// place, while it is in L2 (a ticket each; `clear` zeroes them where no `ends` ran before).
//
// Grid: ends, output (tiles, ceil(slices / slices_per_block)); carry (slices, 4, state). Block: 32
// threads for each line of the tile and slice of the block, up to 1024 (512 with several states);
// carry 512. Shared memory (dynamic): 128 bytes for each token of the tile and slice; `output`
// alone also 512 for each line and slice; several states also 4 for each thread and state. 1024
// threads of up to 64 registers are 32 warps of an SM's 48 on sm_87.
//
// Bytes: x and `projected` once per launch that reads them, 16 / side per token, channel and way
// for the segments' ends, and again for their starts (side: of the tile), y once. What the warps
// ask for is more, by what L1 and L2 serve; docs/kernels/cross-scan.md has both.
#include "kernels/device/device.h"
#include "kernels/device/half8.h"
#include "kernels/device/math.h"
#include "kernels/device/memory.h"
#include "kernels/device/warp.h"
#include "kernels/scan/cross_scan_f16_params.h"

namespace mk {
namespace {

using device::half;
using device::kWarpSize;

constexpr int kChunk = 8;   // tokens that one mma makes the steps of
constexpr int kSlice = 32;  // channels of a warp
constexpr int kRankStep = 16;
constexpr int kCarryWarps = 16;
constexpr float kLog2E = 1.44269504f;

// The directions in the order in which they are walked: down, up, right, left.
constexpr int kWays = 4;
MK_DEVICE int DirectionOf(int way) { return way < 2 ? 2 * way + 1 : 2 * way - 4; }

struct Tile {
  int row, col, rows, cols;  // its first token, its size
};

// A line of a tile along one direction: its first token, how far the next one is, and the same in
// the tile.
struct Line {
  int token, token_step, length;
  int at, at_step;
};

// The channel of a lane. The last slice may have fewer than 32: what is left of its lanes repeat
// the map's last channel, and store nothing.
struct Channel {
  int lane, slice;
  int local;    // in its slice
  int c;        // in the map
  bool inside;  // it is the lane's own
};

MK_DEVICE Tile TileOf(const CrossScanF16Launch& launch, int index) {
  const int across = index % launch.tiles_across, down = index / launch.tiles_across;
  const int row = down * launch.tile_rows, col = across * launch.tile_cols;
  return {row, col, device::Min(launch.tile_rows, launch.p.height - row),
          device::Min(launch.tile_cols, launch.p.width - col)};
}

MK_DEVICE Line LineOf(const CrossScanF16Params& p, const Tile& tile, int k, int i) {
  const bool column = k % 2 == 1;
  Line line;
  line.length = column ? tile.rows : tile.cols;
  line.token = (tile.row + (column ? 0 : i)) * p.width + tile.col + (column ? i : 0);
  line.token_step = column ? p.width : 1;
  line.at = column ? i : i * tile.cols;
  line.at_step = column ? tile.cols : 1;
  if (k >= 2) {
    line.token += (line.length - 1) * line.token_step;
    line.at += (line.length - 1) * line.at_step;
    line.token_step = -line.token_step;
    line.at_step = -line.at_step;
  }
  return line;
}

MK_DEVICE Channel ChannelOf(const CrossScanF16Params& p, int slice, int lane) {
  const int local = lane / 4 + 8 * (lane % 4);
  const int c = slice * kSlice + local;
  return {lane, slice, local, device::Min(c, p.channels - 1), c < p.channels};
}

// log(1 + e^v) = max(v, 0) + log(1 + e), e = e^-|v| in 0..1, to 4e-7 of its value: a model's steps
// are often 0.001, and a logarithm of 1 + e would have lost half of their digits. The polynomial is
// log(1 + e) / e to 2.7e-7, fitted to that by us; with it a step takes two special functions, not
// three.
MK_DEVICE float Softplus(float v) {
  using namespace device;
  const float e = Exp2Approx(-kLog2E * Abs(v));
  float p = -0.00853920727968216f;
  p = Fma(p, e, 0.04408963397145271f);
  p = Fma(p, e, -0.10768172889947891f);
  p = Fma(p, e, 0.1774524301290512f);
  p = Fma(p, e, -0.2449546456336975f);
  p = Fma(p, e, 0.33275479078292847f);
  p = Fma(p, e, -0.4999740421772003f);
  p = Fma(p, e, 0.9999998211860657f);
  return Fma(p, e, MaxNumber(v, 0.0f));  // of a NaN e is one
}

MK_DEVICE const half* FieldsOf(const CrossScanF16Params& p, int token, int k) {
  return p.projected + (static_cast<mk_i64>(token) * 4 + k) * (p.rank + 2 * p.state);
}

// r[i] and r[i + 1] as an operand's word, 0 from `rank` on. i is even. kEven: of an even rank, and
// so an even number of fields.
template <bool kEven>
MK_DEVICE mk_u32 RankPair(const half* r, int i, int rank) {
  using namespace device;
  if (i >= rank) return 0;
  if constexpr (kEven) return Load(As<mk_u32>(r + i));
  const mk_u32 low = Load(r + i).bits;
  return i + 1 < rank ? low | static_cast<mk_u32>(Load(r + i + 1).bits) << 16 : low;
}

// 16 channels times 8 tokens, twice: the weights of the steps by the ranks at `r`, of which there
// are `rank` (0: of a token that is not there).
template <bool kEven>
MK_DEVICE void MultiplyRanks(const device::Words4* weight, const half* r, int parts, int rank,
                             int first, float (&product)[2][4]) {
  using namespace device;
  MK_NO_UNROLL
  for (int i = 0; i < parts; ++i) {
    const int at = i * kRankStep + first;
    const mk_u32 b[2] = {RankPair<kEven>(r, at, rank), RankPair<kEven>(r, at + 8, rank)};
    MK_UNROLL
    for (int m = 0; m < 2; ++m) {
      const Words4 w = Load(weight + (i * 2 + m) * kWarpSize);
      MmaF16(product[m], w.word, b, product[m]);
    }
  }
}

// The steps of `count` tokens of a line from its `base`-th on; 0 for the others of the chunk, which
// leaves a state as it is. kFull: there are none. All lanes take part.
template <bool kOne, bool kFull>
MK_DEVICE void Steps(const CrossScanF16Params& p, const Channel& ch, int k, const Line& line,
                     int base, int count, float bias, float (&step)[kChunk]) {
  using namespace device;
  const int g = ch.lane / 4, t = ch.lane % 4;
  const bool there = kFull || g < count;
  const half* const r = FieldsOf(p, line.token + (base + (there ? g : 0)) * line.token_step, k);
  const int parts = CeilDiv(p.rank, kRankStep);
  const int slices = CeilDiv(p.channels, kSlice);
  const Words4* const weight =
      As<Words4>(p.dt_weight) + (k * slices + ch.slice) * parts * (2 * kWarpSize) + ch.lane;
  float product[2][4] = {};
  // With several states there is no register left for a second way.
  if (kOne && p.rank % 2 == 0) {
    MultiplyRanks<true>(weight, r, parts, there ? p.rank : 0, 2 * t, product);
  } else {
    MultiplyRanks<false>(weight, r, parts, there ? p.rank : 0, 2 * t, product);
  }
  // Lane 4 g + t holds tokens 2 t, 2 t + 1 of channels g + 8 q, and wants all tokens of q = t.
  float v[4][2];
  MK_UNROLL
  for (int q = 0; q < 4; ++q) {
    v[q][0] = product[q / 2][q % 2 * 2];
    v[q][1] = product[q / 2][q % 2 * 2 + 1];
  }
  MK_UNROLL
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (t & bit) != 0;
    MK_UNROLL
    for (int q = 0; q < 4; ++q) {
      if ((q & bit) != 0) continue;
      MK_UNROLL
      for (int e = 0; e < 2; ++e) {
        const float other = ShuffleXor(upper ? v[q][e] : v[q | bit][e], bit);
        (upper ? v[q][e] : v[q | bit][e]) = other;
      }
    }
  }
  MK_UNROLL
  for (int i = 0; i < kChunk; ++i) {
    step[i] = kFull || i < count ? Softplus(v[i / 2][i % 2] + bias) : 0.0f;
  }
}

// B (in lanes 0..7) and C (8..15) of the chunk's tokens, for state n.
MK_DEVICE float LoadFields(const CrossScanF16Params& p, const Channel& ch, int k, const Line& line,
                           int base, int count, int n) {
  const int i = ch.lane % kChunk, which = ch.lane / kChunk;
  if (which >= 2 || i >= count) return 0.0f;
  const half* const fields = FieldsOf(p, line.token + (base + i) * line.token_step, k);
  return device::ToFloat(device::Load(fields + p.rank + which * p.state + n));
}

// What a warp's walk along one direction keeps.
template <bool kOne>
struct Walker {
  const CrossScanF16Params& p;
  const Channel& ch;
  const Line& line;
  int k;
  bool first;   // of the ways: its y is not added, it begins the sums
  float bias;   // of the steps
  float a;      // A log2(e), of the single state
  float h;      // the single state
  float* many;  // the states of this thread in shared memory, where there are several
  int stride;   // from one of them to the next
  float* sums;  // [token of the tile][32]
  float sum;    // of the steps
};

// A chunk of the line from its `base`-th token on. kOut: y is added to the sums.
template <bool kOne, bool kOut, bool kFull>
MK_DEVICE void WalkChunk(Walker<kOne>& w, int base, int count) {
  using namespace device;
  const CrossScanF16Params& p = w.p;
  const Channel& ch = w.ch;
  const Line& line = w.line;
  float step[kChunk], x[kChunk];  // x becomes step x
  Steps<kOne, kFull>(p, ch, w.k, line, base, count, w.bias, step);
  const half* const from =
      p.x + static_cast<mk_i64>(line.token + base * line.token_step) * p.channels + ch.c;
  const int next = line.token_step * p.channels;
  float* const at = kOut ? w.sums + (line.at + base * line.at_step) * kSlice + ch.local : nullptr;
  const int next_at = line.at_step * kSlice;
  const auto put = [&](int i, float y) {
    if (!kFull && i >= count) return;
    if (!w.first) y += Load(at + i * next_at);
    Store(at + i * next_at, y);
  };
  MK_UNROLL
  for (int i = 0; i < kChunk; ++i) {
    x[i] = kFull || i < count ? step[i] * ToFloat(Load(from + i * next)) : 0.0f;
    w.sum += step[i];
  }
  if constexpr (kOne) {
    const float fields = LoadFields(p, ch, w.k, line, base, count, 0);
    MK_UNROLL
    for (int i = 0; i < kChunk; ++i) {
      w.h = Fma(Exp2Approx(step[i] * w.a), w.h, x[i] * Shuffle(fields, i));
      if constexpr (kOut) put(i, Shuffle(fields, kChunk + i) * w.h);
    }
  } else {
    float y[kChunk] = {};
    const float* const a = p.a + static_cast<mk_i64>(w.k) * p.state * p.channels + ch.c;
    MK_NO_UNROLL
    for (int n = 0; n < p.state; ++n) {
      const float fields = LoadFields(p, ch, w.k, line, base, count, n);
      const float a_n = Load(a + static_cast<mk_i64>(n) * p.channels) * kLog2E;
      float h = Load(w.many + n * w.stride);
      MK_UNROLL
      for (int i = 0; i < kChunk; ++i) {
        h = Fma(Exp2Approx(step[i] * a_n), h, x[i] * Shuffle(fields, i));
        if constexpr (kOut) y[i] = Fma(Shuffle(fields, kChunk + i), h, y[i]);
      }
      Store(w.many + n * w.stride, h);
    }
    if constexpr (kOut) {
      MK_UNROLL
      for (int i = 0; i < kChunk; ++i) put(i, y[i]);
    }
  }
}

// Walks a line from state `h`, which becomes its end; several states are in shared memory at
// `many`. Returns the sum of the steps.
template <bool kOne, bool kOut>
MK_DEVICE float Walk(const CrossScanF16Launch& launch, const Channel& ch, int way, const Line& line,
                     float& h, float* many, int stride, float* sums) {
  using namespace device;
  const CrossScanF16Params& p = launch.p;
  const int k = DirectionOf(way);
  const mk_i64 at = static_cast<mk_i64>(k) * p.channels + ch.c;
  Walker<kOne> w = {
      p, ch,   line,   k,    way == 0, Load(p.dt_bias + at), kOne ? Load(p.a + at) * kLog2E : 0.0f,
      h, many, stride, sums, 0.0f};
  int base = 0;
  MK_NO_UNROLL
  for (; base + kChunk <= line.length; base += kChunk) {
    WalkChunk<kOne, kOut, true>(w, base, kChunk);
  }
  if (base < line.length) WalkChunk<kOne, kOut, false>(w, base, line.length - base);
  h = w.h;
  return w.sum;
}

// A warp's place: its slice and line, and its pieces of shared memory.
struct Place {
  Tile tile;
  int tile_index;
  Channel ch;
  int line;
  bool has_slice;
  float* sums;  // [token of the tile][32]
  float* ends;  // [2 ways][line][2][32]: the sum of its steps, its end from 0
  float* many;  // this thread's states, `stride` apart
  int stride;
  int lines;  // that the block has warps for, of each slice
};

// `shared`: the block's dynamic shared memory, or null where a single state needs none.
MK_DEVICE Place PlaceOf(const CrossScanF16Launch& launch, float* shared) {
  const CrossScanF16Params& p = launch.p;
  const int thread = static_cast<int>(threadIdx.x);
  // By a shuffle, so that the compiler sees that it is the same in all lanes: what depends on it
  // then diverges nowhere.
  const int warp = device::Shuffle(thread / kWarpSize, 0);
  Place place;
  place.tile_index = static_cast<int>(blockIdx.x);
  place.tile = TileOf(launch, place.tile_index);
  place.lines = device::Max(launch.tile_rows, launch.tile_cols);
  const int slot = warp / place.lines;
  const int slice = static_cast<int>(blockIdx.y) * launch.slices_per_block + slot;
  place.line = warp % place.lines;
  place.has_slice = slice * kSlice < p.channels;
  place.ch = ChannelOf(p, slice, thread % kWarpSize);
  place.sums = place.ends = place.many = nullptr;
  if (shared != nullptr) {
    place.sums = shared + slot * launch.tile_rows * launch.tile_cols * kSlice;
    place.ends = shared + launch.ends_at + slot * 2 * place.lines * 2 * kSlice;
    place.many = shared + launch.states_at + thread;
  }
  place.stride = static_cast<int>(blockDim.x);
  return place;
}

MK_DEVICE bool HasLine(const Place& place, int k) {
  return place.has_slice && place.line < (k % 2 == 1 ? place.tile.cols : place.tile.rows);
}

// Where the warp's segment along direction k lies among the map's, forwards.
MK_DEVICE mk_i64 SegmentOf(const CrossScanF16Launch& launch, const Place& place, int k) {
  const int across = place.tile_index % launch.tiles_across;
  const int down = place.tile_index / launch.tiles_across;
  return k % 2 == 1 ? (place.tile.col + place.line) * launch.tiles_down + down
                    : (place.tile.row + place.line) * launch.tiles_across + across;
}

template <bool kOne>
MK_DEVICE void ClearStates(const CrossScanF16Params& p, const Place& place, float& one) {
  one = 0.0f;
  if constexpr (!kOne) {
    for (int n = 0; n < p.state; ++n) device::Store(place.many + n * place.stride, 0.0f);
  }
}

// The end of the warp's line in a tile that is the whole map, into shared memory. A single state.
MK_DEVICE void ShareEnd(const CrossScanF16Launch& launch, const Place& place, int way) {
  const Line line = LineOf(launch.p, place.tile, DirectionOf(way), place.line);
  float h = 0.0f;
  const float sum = Walk<true, false>(launch, place.ch, way, line, h, nullptr, 0, place.sums);
  float* const end = place.ends + (way % 2 * place.lines + place.line) * 2 * kSlice + place.ch.lane;
  device::Store(end, sum);
  device::Store(end + kSlice, h);
}

// The same by the lines before it.
MK_DEVICE float BeginOfEnds(const CrossScanF16Params& p, const Place& place, int k) {
  using namespace device;
  const Channel& ch = place.ch;
  const float a = Load(p.a + static_cast<mk_i64>(k) * p.channels + ch.c) * kLog2E;
  const float* const ends = place.ends + k / 2 * place.lines * 2 * kSlice + ch.lane;
  const int last = (k % 2 == 1 ? place.tile.cols : place.tile.rows) - 1;
  const int before = k < 2 ? place.line : last - place.line;
  float h = 0.0f;
  for (int i = 0; i < before; ++i) {
    const float* const end = ends + (k < 2 ? i : last - i) * 2 * kSlice;
    h = Fma(Exp2Approx(a * Load(end)), h, Load(end + kSlice));
  }
  return h;
}

// Where the warp's line along direction k starts from, as `carry` left it.
template <bool kOne>
MK_DEVICE void BeginOfCarry(const CrossScanF16Launch& launch, const Place& place, int k,
                            float& one) {
  using namespace device;
  const CrossScanF16Params& p = launch.p;
  const int states = kOne ? 1 : p.state;
  const mk_i64 plane = static_cast<mk_i64>(launch.segments) * p.channels;
  const float* const begin =
      launch.states + k * states * plane + SegmentOf(launch, place, k) * p.channels + place.ch.c;
  for (int n = 0; n < states; ++n) {
    const float h = Load(begin + n * plane);
    if (kOne) {
      one = h;
    } else {
      Store(place.many + n * place.stride, h);
    }
  }
}

template <bool kOne>
MK_DEVICE void EndsOfTile(const CrossScanF16Launch& launch) {
  using namespace device;
  const CrossScanF16Params& p = launch.p;
  float* shared = nullptr;
  if constexpr (!kOne) {
    MK_DYNAMIC_SHARED(float, memory);
    shared = memory;
  }
  const Place place = PlaceOf(launch, shared);
  const Channel& ch = place.ch;
  const int states = kOne ? 1 : p.state;
  if (launch.tickets != nullptr && blockIdx.y == 0 && threadIdx.x == 0) {
    Store(launch.tickets + place.tile_index, 0u);
  }
  MK_NO_UNROLL
  for (int way = 0; way < kWays; ++way) {
    const int k = DirectionOf(way);
    if (!HasLine(place, k)) continue;
    float one;
    ClearStates<kOne>(p, place, one);
    const float sum = Walk<kOne, false>(launch, ch, way, LineOf(p, place.tile, k, place.line), one,
                                        place.many, place.stride, place.sums);
    if (ch.inside) {
      const mk_i64 plane = static_cast<mk_i64>(launch.segments) * p.channels;
      const mk_i64 at = SegmentOf(launch, place, k) * p.channels + ch.c;
      Store(launch.sums + k * plane + at, sum);
      float* const ends = launch.states + k * states * plane + at;
      for (int n = 0; n < states; ++n) {
        Store(ends + n * plane, kOne ? one : Load(place.many + n * place.stride));
      }
    }
  }
}

// The sums of the block's slice, and the skip, to y: a token a warp, lanes in the order of
// channels.
MK_DEVICE void StoreTile(const CrossScanF16Params& p, const Place& place) {
  using namespace device;
  const int c = place.ch.slice * kSlice + place.ch.lane;
  if (!place.has_slice || c >= p.channels) return;
  const float d = Load(p.d + c);
  const int tokens = place.tile.rows * place.tile.cols;
  for (int i = place.line; i < tokens; i += place.lines) {
    const int token =
        (place.tile.row + i / place.tile.cols) * p.width + place.tile.col + i % place.tile.cols;
    const mk_i64 at = static_cast<mk_i64>(token) * p.channels + c;
    const float x = ToFloat(Load(p.x + at));
    Store(p.y + at, ToHalf(Fma(d, x, Load(place.sums + i * kSlice + place.ch.lane))));
  }
}

// Tokens of the tile, one a warp, in place: norm, then gate.
template <int kWidth>
MK_DEVICE void NormTile(const CrossScanF16Params& p, const Tile& tile) {
  using namespace device;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warps = static_cast<int>(blockDim.x) / kWarpSize;
  const float count = static_cast<float>(p.channels);
  const auto read = [](const half* at, float(&v)[kWidth]) {
    if constexpr (kWidth == 2) {
      const mk_u32 pair = Load(As<mk_u32>(at));
      v[0] = LowHalf(pair), v[1] = HighHalf(pair);
    } else {
      v[0] = ToFloat(Load(at));
    }
  };
  for (int i = static_cast<int>(threadIdx.x) / kWarpSize; i < tile.rows * tile.cols; i += warps) {
    const int token = (tile.row + i / tile.cols) * p.width + tile.col + i % tile.cols;
    half* const y = p.y + static_cast<mk_i64>(token) * p.channels;
    float v[kWidth];
    float sum = 0.0f;
    for (int c = lane * kWidth; c < p.channels; c += kWarpSize * kWidth) {
      read(y + c, v);
      MK_UNROLL
      for (int j = 0; j < kWidth; ++j) sum += v[j];
    }
    const float mean = WarpSum(sum) / count;
    float squares = 0.0f;
    for (int c = lane * kWidth; c < p.channels; c += kWarpSize * kWidth) {
      read(y + c, v);
      MK_UNROLL
      for (int j = 0; j < kWidth; ++j) squares += (v[j] - mean) * (v[j] - mean);
    }
    const float scale = 1.0f / Sqrt(WarpSum(squares) / count + p.epsilon);
    for (int c = lane * kWidth; c < p.channels; c += kWarpSize * kWidth) {
      read(y + c, v);
      float gate[kWidth] = {};
      if (p.gate != nullptr) read(p.gate + static_cast<mk_i64>(token) * p.channels + c, gate);
      MK_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        v[j] = Fma((v[j] - mean) * scale, Load(p.norm_weight + c + j), Load(p.norm_bias + c + j));
        if (p.gate != nullptr) v[j] = ToFloat(ToHalf(v[j])) * gate[j];
      }
      if constexpr (kWidth == 2) {
        Store(As<mk_u32>(y + c), PackHalf2(v[0], v[1]));
      } else {
        Store(y + c, ToHalf(v[0]));
      }
    }
  }
}

// Whether this block is the last of those that share its tile; then all that they stored is seen.
MK_DEVICE bool IsLastOfTile(const CrossScanF16Launch& launch, int tile_index) {
  using namespace device;
  if (launch.tickets == nullptr) {
    SyncThreads();  // all channels of the tile are this block's, and stored
    return true;
  }
  MK_SHARED(mk_u32, ticket, 1);
  FenceDevice();  // what this thread stored is seen by whoever sees the ticket drawn
  SyncThreads();  // ... and so is what the others stored
  if (threadIdx.x == 0) Store(ticket, AtomicAdd(launch.tickets + tile_index, 1u));
  SyncThreads();  // the ticket is there
  const bool last = Load(ticket) == static_cast<mk_u32>(launch.slice_blocks) - 1;
  if (last) FenceDevice();  // nothing is read from before the others drew theirs
  return last;
}

template <bool kOne>
MK_DEVICE void OutputOfTile(const CrossScanF16Launch& launch) {
  using namespace device;
  const CrossScanF16Params& p = launch.p;
  MK_DYNAMIC_SHARED(float, shared);
  const Place place = PlaceOf(launch, shared);
  const bool alone = kOne && launch.states == nullptr;
  MK_NO_UNROLL
  for (int way = 0; way < kWays; ++way) {
    const int k = DirectionOf(way);
    // The columns' sums are there for the rows; and nobody reads their ends any more.
    if (way == 2) SyncThreads();
    if (alone && way % 2 == 0) {
      MK_NO_UNROLL
      for (int i = way; i < way + 2; ++i) {
        if (HasLine(place, k)) ShareEnd(launch, place, i);
      }
      SyncThreads();  // the ends of all columns, or rows, are there
    }
    if (!HasLine(place, k)) continue;
    float one = 0.0f;
    if (alone) {
      one = BeginOfEnds(p, place, k);
    } else {
      BeginOfCarry<kOne>(launch, place, k, one);
    }
    Walk<kOne, true>(launch, place.ch, way, LineOf(p, place.tile, k, place.line), one, place.many,
                     place.stride, place.sums);
  }
  SyncThreads();  // the sums of all ways are there
  StoreTile(p, place);
  if (p.norm_weight == nullptr || !IsLastOfTile(launch, place.tile_index)) return;
  if (p.channels % 2 == 0) {
    NormTile<2>(p, place.tile);
  } else {
    NormTile<1>(p, place.tile);
  }
}

// A stretch of the segments of one direction, as direction k meets them.
struct Stretch {
  const float* sums;  // at the first
  float* states;
  mk_i64 step;  // to the next
  int count;
};

// Over a stretch from h. kStore: each state becomes where its segment starts from.
template <bool kStore>
MK_DEVICE float CarryOver(const Stretch& stretch, float a, float h, float* sum) {
  using namespace device;
  mk_i64 at = 0;
  for (int i = 0; i < stretch.count; ++i, at += stretch.step) {
    const float steps = Load(stretch.sums + at);
    const float end = Load(stretch.states + at);
    if (kStore) Store(stretch.states + at, h);
    h = Fma(Exp2Approx(a * steps), h, end);
    *sum += steps;
  }
  return h;
}

MK_DEVICE void Carry(const CrossScanF16Launch& launch) {
  using namespace device;
  const CrossScanF16Params& p = launch.p;
  MK_SHARED(float, sums, kCarryWarps* kWarpSize);
  MK_SHARED(float, ends, kCarryWarps* kWarpSize);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int c = static_cast<int>(blockIdx.x) * kSlice + lane;
  const int k = static_cast<int>(blockIdx.y);
  const bool inside = c < p.channels;
  const mk_i64 row = static_cast<mk_i64>(k) * p.state + blockIdx.z;
  const int segments = k % 2 == 1 ? p.width * launch.tiles_down : p.height * launch.tiles_across;
  const int share = CeilDiv(segments, kCarryWarps);
  const int begin = Min(warp * share, segments);
  const int first = k < 2 ? begin : segments - 1 - begin;
  const mk_i64 offset = static_cast<mk_i64>(first) * p.channels + c;
  const mk_i64 plane = static_cast<mk_i64>(launch.segments) * p.channels;
  Stretch stretch = {launch.sums + k * plane + offset, launch.states + row * plane + offset,
                     k < 2 ? p.channels : -p.channels, Min(share, segments - begin)};
  if (!inside) stretch.count = 0;
  const float a = inside ? Load(p.a + row * p.channels + c) * kLog2E : 0.0f;

  float sum = 0.0f;
  const float end = CarryOver<false>(stretch, a, 0.0f, &sum);
  Store(sums + warp * kWarpSize + lane, sum);
  Store(ends + warp * kWarpSize + lane, end);
  SyncThreads();  // the ends of all stretches are there
  float h = 0.0f;
  for (int w = 0; w < warp; ++w) {
    h = Fma(Exp2Approx(a * Load(sums + w * kWarpSize + lane)), h,
            Load(ends + w * kWarpSize + lane));
  }
  CarryOver<true>(stretch, a, h, &sum);
}

}  // namespace
}  // namespace mk

extern "C" __global__ void __launch_bounds__(1024, 1)
    mk_cross_scan_f16_one_ends(const mk::CrossScanF16Launch launch) {
  mk::EndsOfTile<true>(launch);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
    mk_cross_scan_f16_one_output(const mk::CrossScanF16Launch launch) {
  mk::OutputOfTile<true>(launch);
}
extern "C" __global__ void __launch_bounds__(512, 2)
    mk_cross_scan_f16_many_ends(const mk::CrossScanF16Launch launch) {
  mk::EndsOfTile<false>(launch);
}
extern "C" __global__ void __launch_bounds__(512, 2)
    mk_cross_scan_f16_many_output(const mk::CrossScanF16Launch launch) {
  mk::OutputOfTile<false>(launch);
}
extern "C" __global__ void __launch_bounds__(512, 2)
    mk_cross_scan_f16_carry(const mk::CrossScanF16Launch launch) {
  mk::Carry(launch);
}
extern "C" __global__ void __launch_bounds__(64)
    mk_cross_scan_f16_clear(const mk::CrossScanF16Launch launch) {
  // Of one tile: several have an `ends` that does it.
  if (threadIdx.x == 0) mk::device::Store(launch.tickets, 0u);
}
