// Conversions between binary32 and the 16-bit types, in plain C++ that vectorises: for host code,
// tests, and the emulated branch of ptx.h. On a GPU ptx.h uses the hardware's, which give the same
// bits.
#ifndef MERGEKERNEL_KERNELS_DEVICE_CONVERT_H_
#define MERGEKERNEL_KERNELS_DEVICE_CONVERT_H_

#include "core/abi/mk_types.h"

namespace mk {
namespace device {

inline mk_u32 BitsOf(float f) {
  mk_u32 bits;
  __builtin_memcpy(&bits, &f, sizeof(bits));
  return bits;
}

inline float FloatOf(mk_u32 bits) {
  float f;
  __builtin_memcpy(&f, &bits, sizeof(f));
  return f;
}

// Exact.
inline float HalfBitsToFloat(mk_u16 h) {
  // The exponent is re-biased by a multiplication, which also makes normal numbers of subnormal
  // halves.
  const mk_u32 magnitude = mk_u32(h & 0x7fffu) << 13;
  mk_u32 bits = BitsOf(FloatOf(magnitude) * 0x1p112f);
  bits |= (h & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return FloatOf(bits | mk_u32(h & 0x8000u) << 16);
}

// To nearest even. Every NaN becomes 0x7fff, as on the GPU.
inline mk_u16 FloatToHalfBits(float f) {
  const mk_u32 all = BitsOf(f);
  const mk_u32 sign = (all >> 16) & 0x8000u;
  const mk_u32 bits = all & 0x7fffffffu;
  if (bits > 0x7f800000u) return 0x7fff;
  if (bits >= 0x477ff000u) return mk_u16(sign | 0x7c00u);  // from 65520 on
  if (bits < 0x38800000u) {                                // below 2^-14: the adder rounds at 2^-24
    return mk_u16(sign | (BitsOf(FloatOf(bits) + 0.5f) - BitsOf(0.5f)));
  }
  const mk_u32 odd = (bits >> 13) & 1u;
  return mk_u16(sign | ((bits - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float Bfloat16BitsToFloat(mk_u16 b) { return FloatOf(mk_u32(b) << 16); }

// To nearest even. Every NaN becomes 0x7fff, as on the GPU.
inline mk_u16 FloatToBfloat16Bits(float f) {
  const mk_u32 bits = BitsOf(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return mk_u16((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// a b + c of halves, rounded once. The product is exact in binary64; the sum is made odd where it
// is not, so that the last rounding is the only one that counts. The way through binary32 keeps
// that: it is again rounded to odd.
inline mk_u16 FmaHalfBits(mk_u16 a, mk_u16 b, mk_u16 c) {
  const double product = double(HalfBitsToFloat(a)) * double(HalfBitsToFloat(b));
  const double addend = HalfBitsToFloat(c);
  const auto round_to_odd = [](double sum, double error) {
    mk_u64 bits;
    __builtin_memcpy(&bits, &sum, sizeof(bits));
    if (error != 0 && error - error == 0 && (bits & 1u) == 0)
      bits += (error > 0) == (sum > 0) ? 1 : -1;
    __builtin_memcpy(&sum, &bits, sizeof(sum));
    return sum;
  };
  const double sum = product + addend;
  const double head = sum - product;
  const double odd = round_to_odd(sum, (product - (sum - head)) + (addend - head));
  // Narrowing truncates towards zero and ORs what was lost into the last bit.
  float narrow = float(odd);
  if (double(narrow) != odd && odd - odd == 0) {
    mk_u32 bits = BitsOf(narrow);
    const bool too_far = (narrow > 0) == (double(narrow) > odd);
    if (too_far) --bits;
    narrow = FloatOf(bits | 1u);
  }
  return FloatToHalfBits(narrow);
}

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_DEVICE_CONVERT_H_
