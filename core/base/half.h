// The 16-bit floating-point types by their bits: IEEE 754 binary16 (FP16) and bfloat16 (BF16).
#ifndef MERGEKERNEL_CORE_BASE_HALF_H_
#define MERGEKERNEL_CORE_BASE_HALF_H_

#include <cstdint>

namespace mk {

// Exact. NaN stays NaN with its sign and payload.
float HalfToFloat(uint16_t bits);
float BFloat16ToFloat(uint16_t bits);

// Rounded to nearest, ties to even; past the largest finite number an infinity. NaN becomes a quiet
// NaN of the same sign.
uint16_t FloatToHalf(float value);
uint16_t FloatToBFloat16(float value);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_HALF_H_
