// Stored numbers to fp32 and to themselves, with the checks on their values.
#ifndef MERGEKERNEL_CORE_WEIGHTS_CONVERT_H_
#define MERGEKERNEL_CORE_WEIGHTS_CONVERT_H_

#include <cstdint>
#include <string>

#include "core/abi/mk_pack.h"
#include "core/weights/safetensors.h"

namespace mk {

float Float8E4M3ToFloat(uint8_t bits);  // no infinities; 7F and FF are NaN

// Whether elements stored as `from` may be loaded as `to`: FP32 from F64, F32, F16, BF16 (F64
// rounded to nearest even), anything else only as itself.
bool Converts(StoredType from, mk_dtype to);

// Converts `count` elements; `from` and `to` need no alignment. Returns the index of the first
// value that may not be (not finite; a BOOL other than 0 and 1), or -1, and writes the value as
// text into `value` then.
int64_t ConvertElements(StoredType from, mk_dtype to, const char* source, int64_t count, char* out,
                        std::string* value);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_WEIGHTS_CONVERT_H_
