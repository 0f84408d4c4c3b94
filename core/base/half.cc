#include "core/base/half.h"

#include <cmath>
#include <cstring>

namespace mk {
namespace {

float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// `bits` without its `drop` lowest, rounded to nearest, ties to even.
uint32_t RoundOff(uint32_t bits, int drop) {
  const uint32_t half = uint32_t{1} << (drop - 1);
  return (bits + half - 1 + (bits >> drop & 1)) >> drop;
}

}  // namespace

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return FloatOfBits(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0) return FloatOfBits(sign | (exponent + 112) << 23 | mantissa << 13);
  // Subnormal: mantissa * 2^-24, exact in fp32.
  const float magnitude = static_cast<float>(mantissa) * FloatOfBits(0x33800000);
  return sign ? -magnitude : magnitude;
}

float BFloat16ToFloat(uint16_t bits) { return FloatOfBits(static_cast<uint32_t>(bits) << 16); }

uint16_t FloatToHalf(float value) {
  const uint32_t bits = BitsOf(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  // 65520 and up: halfway to the number that binary16 has not.
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
  // Normal from 2^-14 on: the exponents' biases differ by 112. A carry out of the mantissa is
  // right.
  if (magnitude >= 0x38800000) {
    return static_cast<uint16_t>(sign | (RoundOff(magnitude, 13) - (112u << 10)));
  }
  // Subnormal: a multiple of 2^-24, which the division makes an integer, exactly but for nearbyint.
  const float multiple = FloatOfBits(magnitude) * FloatOfBits(0x4b800000);
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyint(multiple)));
}

uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = BitsOf(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>(RoundOff(bits, 16));
}

}  // namespace mk
