/* The fixed-width names that packs, kernels and the daemon share. Stands alone so that device code,
 * which NVRTC compiles without <cstdint>, can include it too. */
#ifndef MERGEKERNEL_CORE_ABI_MK_TYPES_H_
#define MERGEKERNEL_CORE_ABI_MK_TYPES_H_

#if defined(__CUDACC_RTC__)
typedef signed char mk_i8;
typedef unsigned char mk_u8;
typedef short mk_i16;
typedef unsigned short mk_u16;
typedef int mk_i32;
typedef unsigned int mk_u32;
typedef long long mk_i64;
typedef unsigned long long mk_u64;
#else
#include <stdint.h>
typedef int8_t mk_i8;
typedef uint8_t mk_u8;
typedef int16_t mk_i16;
typedef uint16_t mk_u16;
typedef int32_t mk_i32;
typedef uint32_t mk_u32;
typedef int64_t mk_i64;
typedef uint64_t mk_u64;
#endif

#endif /* MERGEKERNEL_CORE_ABI_MK_TYPES_H_ */
