// The two 16-bit floating-point types to and from float.
#ifndef MERGEKERNEL_SERVER_CLI_HALF_H_
#define MERGEKERNEL_SERVER_CLI_HALF_H_

#include <cstdint>

namespace mk::cli {

float HalfToFloat(uint16_t half);    // IEEE binary16; exact
float BfloatToFloat(uint16_t half);  // bfloat16; exact

// To the nearest, ties to even; too large is infinity, NaN stays NaN.
uint16_t FloatToHalf(float value);
uint16_t FloatToBfloat(float value);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_HALF_H_
