// Device code as data: what the build rule makes of a `.cu`, and what a pack hands to its host.
#ifndef MERGEKERNEL_KERNELS_DEVICE_IMAGE_H_
#define MERGEKERNEL_KERNELS_DEVICE_IMAGE_H_

#include "core/abi/mk_types.h"

namespace mk {

enum class ImageKind : mk_u32 {
  kCubin = 1,     // machine code for exactly `sm`
  kPtx = 2,       // text, ends with a 0; a driver compiles it for any GPU from `sm` on
  kEmulated = 3,  // `data` is a const emu::Module (kernels/device/emulated.h); in tests only
};

struct DeviceImage {
  ImageKind kind;
  mk_u32 sm;            // 87, 110, ...; 0 for kEmulated
  mk_u32 least_driver;  // the least CUDA version that a driver must support, as cuDriverGetVersion
                        // says it: 13000
  const void* data;     // uncompressed
  mk_u64 bytes;
};

// Static data; lives as long as the code that holds it.
struct DeviceModule {
  const char* name;
  const char* const* kernels;
  mk_u32 kernel_count;
  const DeviceImage* images;  // null where the build had no toolkit
  mk_u32 image_count;
};

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_DEVICE_IMAGE_H_
