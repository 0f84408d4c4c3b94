// Eight halves at a time, where they may and where they may not be one 16-byte access: device code.
#ifndef MERGEKERNEL_KERNELS_LINEAR_LOAD_F16_H_
#define MERGEKERNEL_KERNELS_LINEAR_LOAD_F16_H_

#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"

namespace mk {
namespace device {

inline constexpr int kChunkF16 = 8;  // halves in 16 bytes

// Whether rows of n elements from `p` on can be moved by chunks of eight.
MK_DEVICE bool MovesByChunks(const void* p, mk_i64 n) {
  return n % kChunkF16 == 0 && reinterpret_cast<mk_u64>(p) % 16 == 0;
}

// Element i of eight.
MK_DEVICE float HalfOf(const Words4& words, int i) {
  return ToFloat(half{static_cast<mk_u16>(words.word[i / 2] >> (i % 2 * 16))});
}

// Eight halves of which the first `count` are loaded, one by one, and the rest are zero.
MK_DEVICE Words4 LoadHalves(const half* p, int count MK_SITE) {
  Words4 words;
  MK_UNROLL
  for (int i = 0; i < 4; ++i) {
    mk_u32 word = 0;
    if (2 * i < count) word = Load(p + 2 * i MK_PASS_SITE).bits;
    if (2 * i + 1 < count) word |= mk_u32{Load(p + 2 * i + 1 MK_PASS_SITE).bits} << 16;
    words.word[i] = word;
  }
  return words;
}

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_LOAD_F16_H_
