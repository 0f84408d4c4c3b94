// Element types: the ABI's numbers, the protocol's names, the sizes.
#ifndef MERGEKERNEL_CORE_BASE_DTYPE_H_
#define MERGEKERNEL_CORE_BASE_DTYPE_H_

#include <cstdint>
#include <string_view>

#include "core/abi/mk_pack.h"

namespace mk {

// "FP32", ...; "INVALID" for what is no type. The text lives as long as the process.
std::string_view DtypeName(mk_dtype dtype);

// MK_DTYPE_INVALID for an unknown name. Names are the protocol's, upper case only.
mk_dtype DtypeFromName(std::string_view name);

// Bytes per element; 0 for BYTES (variable) and for what is no type.
uint64_t DtypeSize(mk_dtype dtype);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_DTYPE_H_
