// What every device file includes: CUDA's keywords, indices and shared memory, in a form that three
// compilers read: nvcc, NVRTC (which has no standard headers), and g++ with MK_EMULATED defined,
// which makes code that kernels/emulator runs on the CPU.
//
//   MK_SHARED(float, tile, 32 * 33);             // static shared memory: `tile` is a float*
//   MK_DYNAMIC_SHARED(mk::device::half, stage);  // the launch's dynamic shared memory, 128-byte
//   aligned MK_DEVICE float Square(float x) { return x * x; }
//
// threadIdx, blockIdx, blockDim, gridDim are CUDA's. Memory is reached through memory.h and ptx.h
// only.
#ifndef MERGEKERNEL_KERNELS_DEVICE_DEVICE_H_
#define MERGEKERNEL_KERNELS_DEVICE_DEVICE_H_

#include "core/abi/mk_types.h"

#if defined(MK_EMULATED)

#include "kernels/device/emulated.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __shared__ \
  static_assert(false, "write MK_SHARED(type, name, count): the emulator must know where it is");

#define threadIdx (::mk::emu::Current()->thread_index)
#define blockIdx (::mk::emu::Current()->block_index)
#define blockDim (::mk::emu::Current()->block_size)
#define gridDim (::mk::emu::Current()->grid_size)

#define MK_DEVICE inline
#define MK_UNROLL
#define MK_NO_UNROLL
// The last parameters of accessors: nothing on a GPU, the caller's line here.
#define MK_SITE , ::mk::emu::Site site = ::mk::emu::Site::Here()
#define MK_ONLY_SITE ::mk::emu::Site site = ::mk::emu::Site::Here()
#define MK_PASS_SITE , site
#define MK_PASS_ONLY_SITE site
#define MK_SITE_PARAMETER , ::mk::emu::Site site

#define MK_SHARED(type, name, count)                                                   \
  static const char name##_key = 0;                                                    \
  type* const name = static_cast<type*>(::mk::emu::Current()->services->static_shared( \
      ::mk::emu::Current(), &name##_key, #name, sizeof(type) * (count),                \
      alignof(type) < 16 ? 16 : alignof(type), ::mk::emu::Site::Here()))
#define MK_DYNAMIC_SHARED(type, name)                                                   \
  type* const name = static_cast<type*>(::mk::emu::Current()->services->dynamic_shared( \
      ::mk::emu::Current(), 128, ::mk::emu::Site::Here()))

// Stops the launch with a message; on a GPU it traps.
#define MK_DEVICE_CHECK(condition)                                           \
  do {                                                                       \
    if (!(condition))                                                        \
      ::mk::emu::Current()->services->fail(::mk::emu::Current(), #condition, \
                                           ::mk::emu::Site::Here());         \
  } while (false)

#else

#define MK_DEVICE __device__ __forceinline__
#define MK_UNROLL _Pragma("unroll")
#define MK_NO_UNROLL _Pragma("unroll 1")
#define MK_SITE
#define MK_ONLY_SITE
#define MK_PASS_SITE
#define MK_PASS_ONLY_SITE
#define MK_SITE_PARAMETER

#define MK_SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define MK_DYNAMIC_SHARED(type, name)                                        \
  extern __shared__ __align__(128) unsigned char mk_dynamic_shared_memory[]; \
  type* const name = reinterpret_cast<type*>(mk_dynamic_shared_memory)
#define MK_DEVICE_CHECK(condition) \
  do {                             \
    if (!(condition)) __trap();    \
  } while (false)

#endif

namespace mk {
namespace device {

inline constexpr int kWarpSize = 32;
inline constexpr mk_u32 kFullMask = 0xffffffffu;

// Vectors of 32-bit words: what one load or store can move. Aligned to their size.
struct alignas(8) Words2 {
  mk_u32 word[2];
};
struct alignas(16) Words4 {
  mk_u32 word[4];
};
struct alignas(8) Float2 {
  float x, y;
};
struct alignas(16) Float4 {
  float x, y, z, w;
};

// REQUIRES b > 0, a >= 0.
template <class T>
MK_DEVICE T CeilDiv(T a, T b) {
  return (a + b - 1) / b;
}

template <class T>
MK_DEVICE T Min(T a, T b) {
  return b < a ? b : a;
}

template <class T>
MK_DEVICE T Max(T a, T b) {
  return a < b ? b : a;
}

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_DEVICE_DEVICE_H_
