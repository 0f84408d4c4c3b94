// A group of up to four vectors of channels walks the whole map at once. Tokens depend on each
// other only through h = decay h + drive, one fused multiply-add; all that leads up to it (the step
// projection, softplus, exp) is independent work of some fifty instructions a vector, which the CPU
// overlaps over vectors and tokens. With a state of 1 the h of a group stays in registers.
#include "kernels/scan/cross_scan_simd.h"

#include "kernels/simd/vec_math.h"

namespace mk::simd::MK_SIMD_ISA {
namespace {

constexpr mk_i64 kLanes = F32::kLanes;
constexpr mk_i64 kDirections = 4;

// The tokens along one direction as two nested counts: `outer` lines of `inner` tokens.
struct Walk {
  mk_i64 first, outer, outer_stride, inner, inner_stride;
};

Walk WalkOf(const CrossScanParams& p, mk_i64 direction) {
  const bool by_column = direction % 2 == 1;
  Walk walk =
      by_column ? Walk{0, p.width, 1, p.height, p.width} : Walk{0, p.height, p.width, p.width, 1};
  if (direction >= 2) {
    walk.first = p.height * p.width - 1;
    walk.outer_stride = -walk.outer_stride;
    walk.inner_stride = -walk.inner_stride;
  }
  return walk;
}

// What one group needs of one direction: pointers at its first channel.
struct Group {
  const float* x;
  float* y;
  const float* fields;  // [L, 4, rank + 2 state], at this direction
  const float* weight;  // [rank, channels]
  const float* bias;
  const float* a;  // [state, channels]
  const float* d;
  float* h;  // [state, h_stride]
  mk_i64 h_stride;
};

Group At(const Group& g, mk_i64 c) {
  return {g.x + c, g.y + c, g.fields, g.weight + c, g.bias + c,
          g.a + c, g.d + c, g.h + c,  g.h_stride};
}

// softplus(bias + r weight) for a group of kVectors. Two chains a vector: with one, a rank of 48
// would wait for the latency of 48 additions.
template <int kVectors, bool kWhole>
MK_SIMD_INLINE void Steps(const Group& g, const float* r, mk_i64 rank, mk_i64 channels,
                          mk_i64 count, F32* step) {
  F32 odd[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    step[v] = LoadPart<F32, kWhole>(g.bias + v * kLanes, count);
    odd[v] = F32::Set(0.0f);
  }
  const float* row = g.weight;
  mk_i64 i = 0;
  for (; i + 2 <= rank; i += 2, row += 2 * channels) {
    const F32 r0 = F32::Set(r[i]);
    const F32 r1 = F32::Set(r[i + 1]);
    for (int v = 0; v < kVectors; ++v) {
      step[v] = MulAdd(r0, LoadPart<F32, kWhole>(row + v * kLanes, count), step[v]);
      odd[v] = MulAdd(r1, LoadPart<F32, kWhole>(row + channels + v * kLanes, count), odd[v]);
    }
  }
  if (i < rank) {
    const F32 r0 = F32::Set(r[i]);
    for (int v = 0; v < kVectors; ++v) {
      step[v] = MulAdd(r0, LoadPart<F32, kWhole>(row + v * kLanes, count), step[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) step[v] = Softplus(step[v] + odd[v]);
}

// kFirst: y starts with d x. kOne: a state of 1.
template <int kVectors, bool kWhole, bool kFirst, bool kOne>
void Scan(const CrossScanParams& p, const Walk& walk, const Group& g, mk_i64 count) {
  const mk_i64 channels = p.channels;
  const mk_i64 fields = kDirections * (p.rank + 2 * p.state);
  F32 h[kVectors];
  for (int v = 0; v < kVectors; ++v) h[v] = F32::Set(0.0f);
  if constexpr (!kOne) {
    for (mk_i64 n = 0; n < p.state; ++n) {
      for (int v = 0; v < kVectors; ++v) {
        StorePart<kWhole>(h[v], g.h + n * g.h_stride + v * kLanes, count);
      }
    }
  }
  for (mk_i64 line = 0; line < walk.outer; ++line) {
    mk_i64 token = walk.first + line * walk.outer_stride;
    for (mk_i64 t = 0; t < walk.inner; ++t, token += walk.inner_stride) {
      const float* x = g.x + token * channels;
      float* y = g.y + token * channels;
      const float* r = g.fields + token * fields;
      const float* b = r + p.rank;
      const float* c = b + p.state;
      F32 step[kVectors];
      Steps<kVectors, kWhole>(g, r, p.rank, channels, count, step);
      F32 drive[kVectors];
      F32 sum[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        const F32 in = LoadPart<F32, kWhole>(x + v * kLanes, count);
        drive[v] = step[v] * in;
        sum[v] = kFirst ? LoadPart<F32, kWhole>(g.d + v * kLanes, count) * in
                        : LoadPart<F32, kWhole>(y + v * kLanes, count);
      }
      for (mk_i64 n = 0; n < (kOne ? 1 : p.state); ++n) {
        const F32 b_n = F32::Set(b[n]);
        const F32 c_n = F32::Set(c[n]);
        float* h_n = g.h + n * g.h_stride;
        for (int v = 0; v < kVectors; ++v) {
          const F32 a = LoadPart<F32, kWhole>(g.a + n * channels + v * kLanes, count);
          if constexpr (!kOne) h[v] = LoadPart<F32, kWhole>(h_n + v * kLanes, count);
          h[v] = MulAdd(Exp(step[v] * a), h[v], drive[v] * b_n);
          if constexpr (!kOne) StorePart<kWhole>(h[v], h_n + v * kLanes, count);
          sum[v] = MulAdd(c_n, h[v], sum[v]);
        }
      }
      for (int v = 0; v < kVectors; ++v) StorePart<kWhole>(sum[v], y + v * kLanes, count);
    }
  }
}

template <bool kFirst, bool kOne>
void Groups(const CrossScanParams& p, const Walk& walk, const Group& g, mk_i64 count) {
  mk_i64 c = 0;
  for (; c + 4 * kLanes <= count; c += 4 * kLanes) {
    Scan<4, true, kFirst, kOne>(p, walk, At(g, c), kLanes);
  }
  for (; c + 2 * kLanes <= count; c += 2 * kLanes) {
    Scan<2, true, kFirst, kOne>(p, walk, At(g, c), kLanes);
  }
  for (; c + kLanes <= count; c += kLanes) Scan<1, true, kFirst, kOne>(p, walk, At(g, c), kLanes);
  if (c < count) Scan<1, false, kFirst, kOne>(p, walk, At(g, c), count - c);
}

}  // namespace

void ScanDirection(const CrossScanParams& p, mk_i64 direction, mk_i64 first, mk_i64 count,
                   float* h) {
  const Walk walk = WalkOf(p, direction);
  const Group g = {p.x + first,
                   p.y + first,
                   p.projected + direction * (p.rank + 2 * p.state),
                   p.dt_weight + direction * p.rank * p.channels + first,
                   p.dt_bias + direction * p.channels + first,
                   p.a + direction * p.state * p.channels + first,
                   p.d + first,
                   h,
                   count};
  if (direction == 0) {
    if (p.state == 1) return Groups<true, true>(p, walk, g, count);
    return Groups<true, false>(p, walk, g, count);
  }
  if (p.state == 1) return Groups<false, true>(p, walk, g, count);
  return Groups<false, false>(p, walk, g, count);
}

}  // namespace mk::simd::MK_SIMD_ISA
