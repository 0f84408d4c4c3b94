// Each instruction of ptx.h against the PTX manual's own words: fragments by element number, as its
// tables have them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/device/convert.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/instructions_emulated.h"
#include "kernels/emulator/samples/instructions_params.h"
#include "kernels/emulator/scheduler.h"

namespace mk {
namespace emu {
namespace {

using Words = std::vector<uint32_t>;

Words Try(const std::string& kernel, const Words& in, uint32_t out_words, uint32_t threads = 32,
          int a = 0, int b = 0, bool zeros = false) {
  Emulator emulator;
  DeviceArray<mk_u32> x(&emulator.memory(), "in", in);
  DeviceArray<mk_u32> y(&emulator.memory(), "out", out_words);
  if (zeros) y.Set(Words(out_words, 0));
  const Report report = emulator.Run(mk_emulated_instructions, kernel, {{1}, {threads}},
                                     samples::WordsParams{x.device(), y.device(), a, b});
  EXPECT_TRUE(report.ok()) << report.Text();
  return y.Host();
}

Words RandomWords(uint64_t seed, uint32_t count) {
  Random random(seed);
  Words words(count);
  for (uint32_t& w : words) w = static_cast<uint32_t>(random.Next());
  return words;
}

TEST(Instructions, Shuffles) {
  Words in(32);
  for (uint32_t i = 0; i < 32; ++i) in[i] = 100 + i;
  for (const int width : {1, 2, 8, 16, 32}) {
    for (const int operand : {0, 1, 3, 7, 31}) {
      const Words out = Try("mk_try_shuffles", in, 32 * 4, 32, operand, width);
      for (int lane = 0; lane < 32; ++lane) {
        const int first = lane - lane % width;
        const int within = lane % width;
        EXPECT_EQ(out[lane * 4], 100u + first + operand % width);
        EXPECT_EQ(out[lane * 4 + 1], 100u + (within >= operand ? lane - operand : lane));
        EXPECT_EQ(out[lane * 4 + 2], 100u + (within + operand < width ? lane + operand : lane));
        const int other = lane ^ operand;
        EXPECT_EQ(out[lane * 4 + 3], 100u + (other < first + width ? other : lane))
            << width << " " << operand;
      }
    }
  }
}

TEST(Instructions, VotesAndReductions) {
  for (const uint32_t mask : {0xffffffffu, 0x0000ff0fu, 0x80000001u, 0x00000010u}) {
    const Words in = RandomWords(mask, 32);
    const Words out = Try("mk_try_votes", in, 32 * 12, 32, static_cast<int>(mask));
    uint32_t ballot = 0, all = 1, any = 0, sum = 0, low = ~0u, high = 0, both = ~0u, either = 0,
             odd = 0;
    int32_t slow = INT32_MAX, shigh = INT32_MIN;
    for (uint32_t i = 0; i < 32; ++i) {
      if ((mask >> i & 1u) == 0) continue;
      const uint32_t v = in[i];
      ballot |= (v & 1u) << i;
      all &= v > 2;
      any |= v > 2;
      sum += v;
      low = std::min(low, v);
      high = std::max(high, v);
      slow = std::min(slow, static_cast<int32_t>(v));
      shigh = std::max(shigh, static_cast<int32_t>(v));
      both &= v;
      either |= v;
      odd ^= v;
    }
    for (uint32_t i = 0; i < 32; ++i) {
      if ((mask >> i & 1u) == 0) continue;
      uint32_t match = 0;
      for (uint32_t j = 0; j < 32; ++j)
        match |= uint32_t((mask >> j & 1u) && in[j] % 3 == in[i] % 3) << j;
      const Words want = {ballot,          all,  any,    match, sum, low, high, uint32_t(slow),
                          uint32_t(shigh), both, either, odd};
      EXPECT_EQ(Words(out.begin() + i * 12, out.begin() + i * 12 + 12), want);
    }
  }
}

// Element i of a lane's fragments, as the manual's tables for mma.m16n8k* say where it is.
struct Place {
  int row, col;
};
Place A16(int lane, int i) {
  return {lane / 4 + (i % 4 >= 2 ? 8 : 0), lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
Place B16(int lane, int i) { return {lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane / 4}; }
Place A8(int lane, int i) {
  return {lane / 4 + (i == 1 || i == 3 ? 8 : 0), lane % 4 + (i >= 2 ? 4 : 0)};
}
Place B8(int lane, int i) { return {lane % 4 + (i == 1 ? 4 : 0), lane / 4}; }
Place A32(int lane, int i) {
  const bool upper = i < 4 || (i >= 8 && i < 12);
  return {lane / 4 + (upper ? 0 : 8), lane % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
}
Place B32(int lane, int i) { return {lane % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0), lane / 4}; }
Place C(int lane, int i) { return {lane / 4 + (i >= 2 ? 8 : 0), lane % 4 * 2 + (i & 1)}; }

// Fills fragments of `bits`-wide elements from matrices of whole numbers (exact in every type),
// runs, compares exactly.
void TryMma(int kind, int depth, int bits, Place (*a_place)(int, int), Place (*b_place)(int, int),
            uint32_t (*encode)(int)) {
  Random random(static_cast<uint64_t>(kind) + 1);
  std::vector<int> a(16 * depth), b(depth * 8), c(16 * 8);
  for (std::vector<int>* m : {&a, &b, &c}) {
    for (int& v : *m) v = static_cast<int>(random.Below(41)) - 20;
  }
  Words in(32 * 10, 0);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4 * 32 / bits; ++i) {
      const Place p = a_place(lane, i);
      in[lane * 10 + i * bits / 32] |= encode(a[p.row * depth + p.col]) << (i * bits % 32);
    }
    for (int i = 0; i < 2 * 32 / bits; ++i) {
      const Place p = b_place(lane, i);
      in[lane * 10 + 4 + i * bits / 32] |= encode(b[p.row * 8 + p.col]) << (i * bits % 32);
    }
    for (int i = 0; i < 4; ++i) {
      const int v = c[C(lane, i).row * 8 + C(lane, i).col];
      in[lane * 10 + 6 + i] =
          kind == 3 ? static_cast<uint32_t>(v) : device::BitsOf(static_cast<float>(v));
    }
  }
  const Words out = Try("mk_try_mma", in, 32 * 4, 32, kind);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const Place p = C(lane, i);
      int want = c[p.row * 8 + p.col];
      for (int k = 0; k < depth; ++k) want += a[p.row * depth + k] * b[k * 8 + p.col];
      const uint32_t got = out[lane * 4 + i];
      EXPECT_EQ(kind == 3 ? static_cast<int>(got) : static_cast<int>(device::FloatOf(got)), want)
          << "kind " << kind << " lane " << lane << " element " << i;
    }
  }
}

TEST(Instructions, MmaFragments) {
  TryMma(0, 16, 16, A16, B16,
         [](int v) { return uint32_t{device::FloatToHalfBits(static_cast<float>(v))}; });
  TryMma(1, 16, 16, A16, B16,
         [](int v) { return uint32_t{device::FloatToBfloat16Bits(static_cast<float>(v))}; });
  TryMma(2, 8, 32, A8, B8, [](int v) {
    return device::BitsOf(static_cast<float>(v)) | 0x0fffu;
  });  // low bits: ignored
  TryMma(3, 32, 8, A32, B32, [](int v) { return static_cast<uint32_t>(v) & 0xffu; });
}

TEST(Instructions, LoadMatrix) {
  Words in(32 * 4);
  for (uint32_t r = 0; r < 32; ++r) {
    for (uint32_t w = 0; w < 4; ++w)
      in[r * 4 + w] = (r * 8 + 2 * w) | (r * 8 + 2 * w + 1) << 16;  // row * 8 + column
  }
  const Words out = Try("mk_try_load_matrix", in, 32 * 14);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const auto plain = [&](uint32_t m) {
      const uint32_t at = (m * 8 + lane / 4) * 8 + lane % 4 * 2;
      return at | (at + 1) << 16;
    };
    const auto transposed = [&](uint32_t m) {
      const uint32_t at = (m * 8 + lane % 4 * 2) * 8 + lane / 4;
      return at | (at + 8) << 16;
    };
    const Words want = {plain(0),      transposed(0), plain(0),      plain(1),     transposed(0),
                        transposed(1), plain(0),      plain(1),      plain(2),     plain(3),
                        transposed(0), transposed(1), transposed(2), transposed(3)};
    EXPECT_EQ(Words(out.begin() + lane * 14, out.begin() + lane * 14 + 14), want) << lane;
  }
}

TEST(Instructions, CopyAsyncFillsWithZeros) {
  const Words in = RandomWords(3, 32 * 4);
  for (const uint32_t read : {0u, 2u, 4u, 8u, 10u, 16u}) {
    const Words out = Try("mk_try_copy_async", in, 32 * 12, 32, static_cast<int>(read));
    for (uint32_t lane = 0; lane < 32; ++lane) {
      for (uint32_t i = 0; i < 12; ++i) {
        const uint32_t bytes = i < 4 ? 4 : i < 8 ? 8 : 16;
        const uint32_t at = i % 4 * 4;
        uint32_t want = 7;  // not part of the copy
        if (at < bytes) {
          const uint32_t have = std::min(read, bytes) > at ? std::min(read, bytes) - at : 0;
          want = have >= 4   ? in[lane * 4 + i % 4]
                 : have == 0 ? 0
                             : in[lane * 4 + i % 4] & ((1u << (8 * have)) - 1);
        }
        EXPECT_EQ(out[lane * 12 + i], want) << read << " " << lane << " " << i;
      }
    }
  }
}

TEST(Instructions, BlockVotes) {
  Words in(96, 1);
  EXPECT_EQ(Try("mk_try_block_votes", in, 96 * 3, 96)[95 * 3], 96u);
  in[40] = 0;
  const Words out = Try("mk_try_block_votes", in, 96 * 3, 96);
  for (uint32_t t = 0; t < 96; ++t) {
    EXPECT_EQ(Words(out.begin() + t * 3, out.begin() + t * 3 + 3), (Words{95, 0, 1}));
  }
}

TEST(Instructions, Atomics) {
  Words in(32);
  for (uint32_t i = 0; i < 32; ++i) in[i] = i + 1;
  const Words out = Try("mk_try_atomics", in, 8, 32, 0, 0, true);
  const uint32_t sum = 32 * 33 / 2;
  EXPECT_EQ(out, (Words{sum, 0, 32, 0xffffffffu, device::BitsOf(static_cast<float>(sum)), 0u - sum,
                        1, 5}));
}

TEST(Instructions, ElementaryFunctions) {
  Words in(32);
  for (uint32_t i = 0; i < 32; ++i) in[i] = device::BitsOf(0.1f + 0.25f * static_cast<float>(i));
  const Words out = Try("mk_try_math", in, 32 * 7);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const double x = device::FloatOf(in[lane]);
    const double want[7] = {std::exp(x),  std::log(x),  std::log1p(x), std::erf(x),
                            std::tanh(x), std::fabs(x), std::floor(x)};
    for (int i = 0; i < 7; ++i) {
      EXPECT_NEAR(device::FloatOf(out[lane * 7 + i]), want[i],
                  4 * 0x1p-24 * std::fabs(want[i]) + 1e-8)
          << i << " of " << x;
    }
  }
}

TEST(Instructions, Hints) {
  const Words in = RandomWords(5, 32 * 4);
  const Words out = Try("mk_try_hints", in, 32 * 4);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(out[lane * 4 + i], in[lane * 4 + 3 - i]);
  }
}

TEST(Instructions, ArithmeticThroughTheKernel) {
  Words in = RandomWords(9, 32 * 3);
  in[0] = in[1] = in[2] = 0;
  const Words out = Try("mk_try_arithmetic", in, 32 * 11);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t a = in[lane * 3], b = in[lane * 3 + 1], c = in[lane * 3 + 2];
    const uint32_t* got = &out[lane * 11];
    for (int h = 0; h < 32; h += 16) {
      EXPECT_EQ(got[2] >> h & 0xffffu,
                device::FmaHalfBits(mk_u16(a >> h), mk_u16(b >> h), mk_u16(c >> h)));
    }
    EXPECT_EQ(got[3], got[6] | uint32_t{device::FloatToHalfBits(device::FloatOf(b))} << 16);
    EXPECT_EQ(got[4], got[7] | uint32_t{device::FloatToBfloat16Bits(device::FloatOf(b))} << 16);
    EXPECT_EQ(got[9], a << 16);
    EXPECT_EQ(static_cast<int>(got[10]),
              (a == 0 ? -1 : __builtin_ctz(a)) * 64 + __builtin_popcount(b));
  }
}

// Against arithmetic on whole multiples of 2^-24, 2^-48: nothing is rounded before the end.
double RoundToHalf(double exact) {  // the nearest half, ties to even, by scaling to whole numbers
  if (exact == 0 || std::isnan(exact) || std::isinf(exact)) return exact;
  const int exponent = std::max(std::ilogb(exact), -14);
  const double unit = std::ldexp(1.0, exponent - 10);
  const double rounded = std::nearbyint(exact / unit) * unit;
  return std::fabs(rounded) >= 65536.0 ? std::copysign(INFINITY, exact) : rounded;
}

TEST(Convert, EveryHalfThereAndBack) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const uint16_t bits = static_cast<uint16_t>(h);
    const float f = device::HalfBitsToFloat(bits);
    const int exponent = (h >> 10) & 31;
    const int mantissa = h & 1023;
    const float sign = h & 0x8000u ? -1.0f : 1.0f;
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(f));
      EXPECT_EQ(device::FloatToHalfBits(f), 0x7fffu);
      continue;
    }
    const float want = exponent == 31 ? INFINITY
                       : exponent == 0
                           ? std::ldexp(static_cast<float>(mantissa), -24)
                           : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
    ASSERT_EQ(f, sign * want) << h;
    ASSERT_EQ(device::FloatToHalfBits(f), bits);
  }
}

TEST(Convert, FloatToHalfRoundsToNearestEven) {
  Random random(11);
  for (int i = 0; i < 2000000; ++i) {
    uint32_t bits = static_cast<uint32_t>(random.Next());
    if (i % 2 == 0) bits = (bits & 0x8fffffffu) | 0x30000000u;  // the range of halves
    if (i % 4 == 0) bits &= 0xfffff000u;                        // ties
    const float f = device::FloatOf(bits);
    if (std::isnan(f)) continue;
    ASSERT_EQ(double{device::HalfBitsToFloat(device::FloatToHalfBits(f))}, RoundToHalf(f)) << f;
  }
  EXPECT_EQ(device::FloatToHalfBits(65519.0f), 0x7bffu);
  EXPECT_EQ(device::FloatToHalfBits(65520.0f), 0x7c00u);
  EXPECT_EQ(device::FloatToHalfBits(0x1p-25f), 0u);
  EXPECT_EQ(device::FloatToHalfBits(0x1.002p-25f), 1u);
  EXPECT_EQ(device::FloatToHalfBits(-0.0f), 0x8000u);
}

TEST(Convert, Bfloat16RoundsToNearestEven) {
  EXPECT_EQ(device::FloatToBfloat16Bits(device::FloatOf(0x3f808000u)), 0x3f80u);
  EXPECT_EQ(device::FloatToBfloat16Bits(device::FloatOf(0x3f818000u)), 0x3f82u);
  EXPECT_EQ(device::FloatToBfloat16Bits(device::FloatOf(0x3f808001u)), 0x3f81u);
  EXPECT_EQ(device::FloatToBfloat16Bits(device::FloatOf(0x7f7fffffu)), 0x7f80u);
  EXPECT_EQ(device::FloatToBfloat16Bits(device::FloatOf(0xff800001u)), 0x7fffu);
}

TEST(Convert, FmaOfHalvesIsRoundedOnce) {
  Random random(12);
  for (int i = 0; i < 1000000; ++i) {
    const uint64_t r = random.Next();
    uint16_t a = static_cast<uint16_t>(r), b = static_cast<uint16_t>(r >> 16),
             c = static_cast<uint16_t>(r >> 32);
    if (i % 2 == 0)
      a = (a & 0x83ffu) | 0x3c00u, b = (b & 0x83ffu) | 0x3c00u;  // near one, so that c matters
    const long double product =
        static_cast<long double>(device::HalfBitsToFloat(a)) * device::HalfBitsToFloat(b);
    const long double addend = device::HalfBitsToFloat(c);
    // 64 bits of significand hold every sum whose parts matter: 22 bits of product, and 40 of
    // distance.
    const long double sum = product + addend;
    if (std::isnan(static_cast<double>(sum)) || sum - product != addend || sum - addend != product)
      continue;
    if (static_cast<double>(sum) != sum) continue;  // RoundToHalf takes a double
    ASSERT_EQ(double{device::HalfBitsToFloat(device::FmaHalfBits(a, b, c))},
              RoundToHalf(static_cast<double>(sum)))
        << a << " " << b << " " << c;
  }
  // 1 + 2^-11 is a tie in the sum; the product's last bit decides it.
  EXPECT_EQ(device::FmaHalfBits(0x3c01, 0x1000, 0x3c00),
            0x3c01u);  // (1 + 2^-10) 2^-11 + 1: above the tie
  EXPECT_EQ(device::FmaHalfBits(0x3c00, 0x1000, 0x3c00), 0x3c00u);  // the tie: to even
}

}  // namespace
}  // namespace emu
}  // namespace mk
