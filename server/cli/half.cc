#include "server/cli/half.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace mk::cli {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

float HalfToFloat(uint16_t half) {
  const int exponent = half >> 10 & 0x1F;
  const int fraction = half & 0x3FF;
  float magnitude;
  if (exponent == 0x1F) {
    magnitude = fraction ? std::numeric_limits<float>::quiet_NaN()
                         : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
  }
  return half & 0x8000 ? -magnitude : magnitude;
}

float BfloatToFloat(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint16_t FloatToHalf(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return sign | 0x7E00;
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return sign | 0x7C00;  // rounds past the largest, 65504
  if (magnitude < 0x1p-14f) {                       // subnormal: a multiple of 2^-24
    // nearbyint rounds ties to even in the default mode. 1024 is the smallest normal number's code.
    return sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f));
  }
  int exponent;
  const float fraction = std::frexp(magnitude, &exponent);  // [0.5, 1) * 2^exponent
  // 1024 to 2048; 2048 carries into the exponent by itself.
  const auto rounded = static_cast<int>(std::nearbyint(fraction * 2048));
  return sign | static_cast<uint16_t>(((exponent + 14) << 10) + rounded - 1024);
}

uint16_t FloatToBfloat(float value) {
  const uint32_t bits = BitsOf(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace mk::cli
