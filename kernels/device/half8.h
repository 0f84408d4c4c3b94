// Eight halves at once, as 16 bytes of memory and as floats.
#ifndef MERGEKERNEL_KERNELS_DEVICE_HALF8_H_
#define MERGEKERNEL_KERNELS_DEVICE_HALF8_H_

#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"

namespace mk {
namespace device {

MK_DEVICE float LowHalf(mk_u32 pair) { return ToFloat(half{static_cast<mk_u16>(pair & 0xffffu)}); }
MK_DEVICE float HighHalf(mk_u32 pair) { return ToFloat(half{static_cast<mk_u16>(pair >> 16)}); }

MK_DEVICE void Unpack(const Words4& words, float (&v)[8]) {
  MK_UNROLL
  for (int i = 0; i < 4; ++i) {
    v[2 * i] = LowHalf(words.word[i]);
    v[2 * i + 1] = HighHalf(words.word[i]);
  }
}

// Each rounded to nearest even.
MK_DEVICE Words4 Pack(const float (&v)[8]) {
  Words4 words;
  MK_UNROLL
  for (int i = 0; i < 4; ++i) words.word[i] = PackHalf2(v[2 * i], v[2 * i + 1]);
  return words;
}

// Eight floats, `p` 16-byte aligned.
MK_DEVICE void LoadFloat8(const float* p, float (&v)[8] MK_SITE) {
#if defined(MK_EMULATED)
  const Float4 a = Load(As<Float4>(p), site);
  const Float4 b = Load(As<Float4>(p) + 1, site);
#else
  const Float4 a = Load(As<Float4>(p));
  const Float4 b = Load(As<Float4>(p) + 1);
#endif
  v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
  v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_DEVICE_HALF8_H_
