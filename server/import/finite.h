// One look at every stored number of a tensor while it passes by.
#ifndef MERGEKERNEL_SERVER_IMPORT_FINITE_H_
#define MERGEKERNEL_SERVER_IMPORT_FINITE_H_

#include <cstdint>
#include <string>

#include "core/weights/safetensors.h"

namespace mk {

// F32, F16, BF16, F64: what the loader turns to fp32.
bool IsFloatingPoint(StoredType type);

// Index of the first of `count` elements at `data` (any alignment) that is no finite fp32 number
// (NaN, infinity, an F64 beyond fp32), with its value as text; -1 when there is none. Sets
// *all_zero to false when one is not +0 or -0. REQUIRES IsFloatingPoint(type).
int64_t FirstNotFinite(StoredType type, const char* data, int64_t count, std::string* value,
                       bool* all_zero);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_IMPORT_FINITE_H_
