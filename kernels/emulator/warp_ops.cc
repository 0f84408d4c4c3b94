// What the collectives of a warp compute, over the 32 lanes' parts at once.
//
// mma: products are exact in fp32 (but for bf16 at the ends of the range); d = c + a[.][0] b[0][.]
// + a[.][1] b[1][.] + ..., in this order, each addition rounded to nearest. Compiled without
// contraction, so that every machine gives the same bits.
#include <cstring>

#include "kernels/device/convert.h"
#include "kernels/emulator/launch.h"

namespace mk {
namespace emu {
namespace {

constexpr uint32_t kLanes = 32;
constexpr uint32_t kAllLanes = 0xffffffffu;

using Parts = const Collective* const*;

const char* Shuffle(Parts parts, uint32_t lanes, uint32_t* culprit) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1u) == 0) continue;
    const Collective& p = *parts[lane];
    const int32_t width = static_cast<int32_t>(p.detail);
    *culprit = lane;
    if (width < 1 || width > 32 || (width & (width - 1)) != 0)
      return "its width is no power of two up to 32";
    const int32_t self = static_cast<int32_t>(lane);
    const int32_t begin = self / width * width;
    const int32_t last = begin + width - 1;
    int32_t source = self;
    switch (p.op) {
      case Op::kShuffleIndex:
        source = begin + (p.lane & (width - 1));
        break;
      case Op::kShuffleUp:
        if (self - p.lane >= begin) source = self - p.lane;
        break;
      case Op::kShuffleDown:
        if (self + p.lane <= last) source = self + p.lane;
        break;
      default:
        if ((self ^ p.lane) <= last) source = self ^ p.lane;
        break;
    }
    if (source < 0 || source >= 32 || (lanes >> source & 1u) == 0) {
      return "it takes the value of a lane that does not take part";
    }
    *p.out = *parts[source]->in;
  }
  return nullptr;
}

void Vote(Parts parts, uint32_t lanes, Op op) {
  uint32_t holds = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1u) != 0 && *parts[lane]->in != 0) holds |= 1u << lane;
  }
  const uint32_t result = op == Op::kBallot ? holds : op == Op::kAll ? holds == lanes : holds != 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1u) != 0) *parts[lane]->out = result;
  }
}

void MatchAny(Parts parts, uint32_t lanes) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1u) == 0) continue;
    uint32_t same = 0;
    for (uint32_t other = 0; other < kLanes; ++other) {
      if ((lanes >> other & 1u) != 0 && *parts[other]->in == *parts[lane]->in) same |= 1u << other;
    }
    *parts[lane]->out = same;
  }
}

uint32_t Combine(Op op, bool is_signed, uint32_t a, uint32_t b) {
  const bool less = is_signed ? static_cast<int32_t>(a) < static_cast<int32_t>(b) : a < b;
  switch (op) {
    case Op::kReduceAdd:
      return a + b;
    case Op::kReduceMin:
      return less ? a : b;
    case Op::kReduceMax:
      return less ? b : a;
    case Op::kReduceAnd:
      return a & b;
    case Op::kReduceOr:
      return a | b;
    default:
      return a ^ b;
  }
}

void Reduce(Parts parts, uint32_t lanes, Op op) {
  uint32_t first = static_cast<uint32_t>(__builtin_ctz(lanes));
  uint32_t result = *parts[first]->in;
  for (uint32_t lane = first + 1; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1u) != 0)
      result = Combine(op, parts[lane]->detail != 0, result, *parts[lane]->in);
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1u) != 0) *parts[lane]->out = result;
  }
}

void LoadMatrix(Parts parts, bool transposed) {
  const uint32_t count = parts[0]->detail;
  for (uint32_t m = 0; m < count; ++m) {
    uint16_t matrix[8][8];
    for (uint32_t row = 0; row < 8; ++row)
      std::memcpy(matrix[row], parts[8 * m + row]->in, sizeof(matrix[row]));
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t g = lane / 4;
      const uint32_t t = lane % 4 * 2;
      const uint32_t low = transposed ? matrix[t][g] : matrix[g][t];
      const uint32_t high = transposed ? matrix[t + 1][g] : matrix[g][t + 1];
      parts[lane]->out[m] = low | high << 16;
    }
  }
}

// The words of A [16][kWords] and of B's columns [8][kWords], as the fragments hold them: kWords is
// 8 for 16- and 8-bit elements; for tf32 the same arrangement over words of one element.
constexpr uint32_t kWords = 8;

struct Operands {
  uint32_t a[16][kWords];
  uint32_t b[8][kWords];  // by column
};

Operands Gather(Parts parts) {
  Operands o;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t g = lane / 4;
    const uint32_t t = lane % 4;
    const uint32_t* in = parts[lane]->in;
    o.a[g][t] = in[0];
    o.a[g + 8][t] = in[1];
    o.a[g][t + 4] = in[2];
    o.a[g + 8][t + 4] = in[3];
    o.b[g][t] = in[4];
    o.b[g][t + 4] = in[5];
  }
  return o;
}

template <class T>
void GatherC(Parts parts, T (&c)[16][8]) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t* in = parts[lane]->in + 6;
    std::memcpy(&c[lane / 4][lane % 4 * 2], in, 8);
    std::memcpy(&c[lane / 4 + 8][lane % 4 * 2], in + 2, 8);
  }
}

template <class T>
void Scatter(Parts parts, const T (&d)[16][8]) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    std::memcpy(parts[lane]->out, &d[lane / 4][lane % 4 * 2], 8);
    std::memcpy(parts[lane]->out + 2, &d[lane / 4 + 8][lane % 4 * 2], 8);
  }
}

template <uint32_t kDepth, class T>
void MultiplyAdd(const T (&a)[16][kDepth], const T (&b)[kDepth][8], T (&c)[16][8]) {
  for (uint32_t i = 0; i < 16; ++i) {
    T sum[8];
    for (uint32_t j = 0; j < 8; ++j) sum[j] = c[i][j];
    for (uint32_t k = 0; k < kDepth; ++k) {
      for (uint32_t j = 0; j < 8; ++j) sum[j] += a[i][k] * b[k][j];
    }
    for (uint32_t j = 0; j < 8; ++j) c[i][j] = sum[j];
  }
}

template <bool kBfloat>
float Widen(uint16_t bits) {
  return kBfloat ? device::Bfloat16BitsToFloat(bits) : device::HalfBitsToFloat(bits);
}

template <bool kBfloat>
void Mma16(Parts parts) {
  const Operands o = Gather(parts);
  uint16_t narrow[16][16];
  float a[16][16];
  std::memcpy(narrow, o.a, sizeof(narrow));
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t k = 0; k < 16; ++k) a[i][k] = Widen<kBfloat>(narrow[i][k]);
  }
  float columns[8][16];
  std::memcpy(narrow, o.b, sizeof(o.b));
  for (uint32_t j = 0; j < 8; ++j) {
    for (uint32_t k = 0; k < 16; ++k) columns[j][k] = Widen<kBfloat>(narrow[j][k]);
  }
  float b[16][8];
  for (uint32_t j = 0; j < 8; ++j) {
    for (uint32_t k = 0; k < 16; ++k) b[k][j] = columns[j][k];
  }
  float c[16][8];
  GatherC(parts, c);
  MultiplyAdd<16>(a, b, c);
  Scatter(parts, c);
}

void MmaTf32(Parts parts) {
  constexpr uint32_t kKept = ~0x1fffu;
  const Operands o = Gather(parts);
  float a[16][8];
  float b[8][8];
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t k = 0; k < 8; ++k) a[i][k] = device::FloatOf(o.a[i][k] & kKept);
  }
  for (uint32_t j = 0; j < 8; ++j) {
    for (uint32_t k = 0; k < 8; ++k) b[k][j] = device::FloatOf(o.b[j][k] & kKept);
  }
  float c[16][8];
  GatherC(parts, c);
  MultiplyAdd<8>(a, b, c);
  Scatter(parts, c);
}

void MmaS8(Parts parts) {
  const Operands o = Gather(parts);
  int8_t narrow[16][32];
  uint32_t a[16][32];  // unsigned: it wraps, as the instruction without .satfinite does
  std::memcpy(narrow, o.a, sizeof(narrow));
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t k = 0; k < 32; ++k) a[i][k] = static_cast<uint32_t>(int32_t{narrow[i][k]});
  }
  std::memcpy(narrow, o.b, sizeof(o.b));
  uint32_t b[32][8];
  for (uint32_t j = 0; j < 8; ++j) {
    for (uint32_t k = 0; k < 32; ++k) b[k][j] = static_cast<uint32_t>(int32_t{narrow[j][k]});
  }
  uint32_t c[16][8];
  GatherC(parts, c);
  MultiplyAdd<32>(a, b, c);
  Scatter(parts, c);
}

}  // namespace

const char* OpName(Op op) {
  switch (op) {
    case Op::kSyncWarp:
      return "SyncWarp";
    case Op::kShuffleIndex:
      return "Shuffle";
    case Op::kShuffleUp:
      return "ShuffleUp";
    case Op::kShuffleDown:
      return "ShuffleDown";
    case Op::kShuffleXor:
      return "ShuffleXor";
    case Op::kBallot:
      return "Ballot";
    case Op::kAll:
      return "All";
    case Op::kAny:
      return "Any";
    case Op::kMatchAny:
      return "MatchAny";
    case Op::kReduceAdd:
      return "ReduceAdd";
    case Op::kReduceMin:
      return "ReduceMin";
    case Op::kReduceMax:
      return "ReduceMax";
    case Op::kReduceAnd:
      return "ReduceAnd";
    case Op::kReduceOr:
      return "ReduceOr";
    case Op::kReduceXor:
      return "ReduceXor";
    case Op::kLoadMatrix:
      return "LoadMatrix";
    case Op::kLoadMatrixTransposed:
      return "LoadMatrixTransposed";
    case Op::kMmaF16:
      return "MmaF16";
    case Op::kMmaBf16:
      return "MmaBf16";
    case Op::kMmaTf32:
      return "MmaTf32";
    case Op::kMmaS8:
      return "MmaS8";
  }
  return "a collective";
}

const char* PerformWarpOp(const Collective* const* parts, uint32_t lanes, uint32_t* culprit) {
  const uint32_t first = static_cast<uint32_t>(__builtin_ctz(lanes));
  *culprit = first;
  const Op op = parts[first]->op;
  if (IsMatrixOp(op) && lanes != kAllLanes) return "it needs all 32 lanes";
  switch (op) {
    case Op::kSyncWarp:
      return nullptr;
    case Op::kShuffleIndex:
    case Op::kShuffleUp:
    case Op::kShuffleDown:
    case Op::kShuffleXor:
      return Shuffle(parts, lanes, culprit);
    case Op::kBallot:
    case Op::kAll:
    case Op::kAny:
      Vote(parts, lanes, op);
      return nullptr;
    case Op::kMatchAny:
      MatchAny(parts, lanes);
      return nullptr;
    case Op::kReduceAdd:
    case Op::kReduceMin:
    case Op::kReduceMax:
    case Op::kReduceAnd:
    case Op::kReduceOr:
    case Op::kReduceXor:
      Reduce(parts, lanes, op);
      return nullptr;
    case Op::kLoadMatrix:
    case Op::kLoadMatrixTransposed:
      LoadMatrix(parts, op == Op::kLoadMatrixTransposed);
      return nullptr;
    case Op::kMmaF16:
      Mma16<false>(parts);
      return nullptr;
    case Op::kMmaBf16:
      Mma16<true>(parts);
      return nullptr;
    case Op::kMmaTf32:
      MmaTf32(parts);
      return nullptr;
    case Op::kMmaS8:
      MmaS8(parts);
      return nullptr;
  }
  return "no such collective";
}

}  // namespace emu
}  // namespace mk
