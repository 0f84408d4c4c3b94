// The 16-bit floating-point types of device code, as storage: arithmetic is done in fp32 (ToFloat,
// ToHalf, ... of ptx.h). Plain bits, so that host code, parameter structs and NVRTC can have them
// without any header of CUDA's.
#ifndef MERGEKERNEL_KERNELS_DEVICE_TYPES_H_
#define MERGEKERNEL_KERNELS_DEVICE_TYPES_H_

#include "core/abi/mk_types.h"

namespace mk {
namespace device {

struct alignas(2) half {  // IEEE binary16
  mk_u16 bits;
};
struct alignas(2) bfloat16 {  // the upper half of a binary32
  mk_u16 bits;
};

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_DEVICE_TYPES_H_
