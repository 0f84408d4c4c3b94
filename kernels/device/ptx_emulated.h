// The emulated branch of ptx.h. Included by ptx.h alone.
#ifndef MERGEKERNEL_KERNELS_DEVICE_PTX_EMULATED_H_
#define MERGEKERNEL_KERNELS_DEVICE_PTX_EMULATED_H_

#include "kernels/device/convert.h"
#include "kernels/device/device.h"
#include "kernels/device/types.h"

namespace mk {
namespace device {
namespace detail {

inline mk_u32 Bits(float v) { return BitsOf(v); }
inline mk_u32 Bits(mk_u32 v) { return v; }
inline mk_u32 Bits(mk_i32 v) { return static_cast<mk_u32>(v); }
inline void FromBits(mk_u32 bits, float* v) { *v = FloatOf(bits); }
inline void FromBits(mk_u32 bits, mk_u32* v) { *v = bits; }
inline void FromBits(mk_u32 bits, mk_i32* v) { *v = static_cast<mk_i32>(bits); }

template <class T>
constexpr mk_u32 kIsSigned = T(-1) < T(0) ? 1 : 0;

template <class T>
T Collect(emu::Op op, T value, int lane, mk_u32 detail, mk_u32 mask, emu::Site site) {
  const mk_u32 in = Bits(value);
  mk_u32 out = 0;
  const emu::Collective part = {op, mask, detail, lane, site, &in, &out};
  emu::Current()->services->collective(emu::Current(), &part);
  T result;
  FromBits(out, &result);
  return result;
}

inline mk_u32 Barrier(emu::Barrier kind, int id, int threads, bool predicate, emu::Site site) {
  return emu::Current()->services->barrier(emu::Current(), kind, static_cast<mk_u32>(id),
                                           static_cast<mk_u32>(threads), predicate ? 1u : 0u, site);
}

// `d` and `c` are four words of any 32-bit type.
inline void Mma(emu::Op op, void* d, const mk_u32 (&a)[4], const mk_u32 (&b)[2], const void* c,
                emu::Site site) {
  mk_u32 in[10];
  mk_u32 out[4];
  __builtin_memcpy(in, a, sizeof(a));
  __builtin_memcpy(in + 4, b, sizeof(b));
  __builtin_memcpy(in + 6, c, 16);
  const emu::Collective part = {op, kFullMask, 0, 0, site, in, out};
  emu::Current()->services->collective(emu::Current(), &part);
  __builtin_memcpy(d, out, sizeof(out));
}

// Each lane reads its own row, so that the access is its own in every detector; the collective
// deals them out.
template <int kCount>
void LoadMatrices(emu::Op op, mk_u32 (&d)[kCount], const void* row, emu::Site site) {
  static_assert(kCount == 1 || kCount == 2 || kCount == 4, "1, 2 or 4 matrices");
  mk_u32 in[4] = {};
  emu::Thread* thread = emu::Current();
  if (thread->linear % kWarpSize < 8 * kCount) {
    const void* memory =
        thread->services->access(thread, row, 16, emu::Access::kLoadMatrixRow, site);
    __builtin_memcpy(in, memory, sizeof(in));
  }
  const emu::Collective part = {op, kFullMask, kCount, 0, site, in, d};
  thread->services->collective(thread, &part);
}

// By words: a library's memcpy would be another's code to a sanitizer.
inline void CopyWords(void* to, const void* from, mk_u32 bytes) {
  for (mk_u32 i = 0; i < bytes; i += 4) {
    static_cast<mk_u32*>(to)[i / 4] = static_cast<const mk_u32*>(from)[i / 4];
  }
}

}  // namespace detail

inline void SyncThreads(emu::Site site) { detail::Barrier(emu::Barrier::kSync, 0, 0, false, site); }
inline int SyncThreadsCount(bool predicate, emu::Site site) {
  return static_cast<int>(detail::Barrier(emu::Barrier::kCount, 0, 0, predicate, site));
}
inline bool SyncThreadsAnd(bool predicate, emu::Site site) {
  return detail::Barrier(emu::Barrier::kAnd, 0, 0, predicate, site) != 0;
}
inline bool SyncThreadsOr(bool predicate, emu::Site site) {
  return detail::Barrier(emu::Barrier::kOr, 0, 0, predicate, site) != 0;
}
inline void SyncWarp(mk_u32 mask, emu::Site site) {
  const emu::Collective part = {emu::Op::kSyncWarp, mask, 0, 0, site, nullptr, nullptr};
  emu::Current()->services->collective(emu::Current(), &part);
}
inline void SyncWarp(emu::Site site) { SyncWarp(kFullMask, site); }

inline void BarrierSync(int id, int threads, emu::Site site) {
  detail::Barrier(emu::Barrier::kSync, id, threads, false, site);
}
inline void BarrierArrive(int id, int threads, emu::Site site) {
  detail::Barrier(emu::Barrier::kArrive, id, threads, false, site);
}
inline void FenceDevice(emu::Site site) {
  emu::Current()->services->fence(emu::Current(), true, site);
}
inline void FenceBlock(emu::Site site) {
  emu::Current()->services->fence(emu::Current(), false, site);
}

template <class T>
T Shuffle(T value, int source, int width, mk_u32 mask, emu::Site site) {
  return detail::Collect(emu::Op::kShuffleIndex, value, source, static_cast<mk_u32>(width), mask,
                         site);
}
template <class T>
T ShuffleUp(T value, int delta, int width, mk_u32 mask, emu::Site site) {
  return detail::Collect(emu::Op::kShuffleUp, value, delta, static_cast<mk_u32>(width), mask, site);
}
template <class T>
T ShuffleDown(T value, int delta, int width, mk_u32 mask, emu::Site site) {
  return detail::Collect(emu::Op::kShuffleDown, value, delta, static_cast<mk_u32>(width), mask,
                         site);
}
template <class T>
T ShuffleXor(T value, int lane_mask, int width, mk_u32 mask, emu::Site site) {
  return detail::Collect(emu::Op::kShuffleXor, value, lane_mask, static_cast<mk_u32>(width), mask,
                         site);
}

inline mk_u32 Ballot(bool predicate, mk_u32 mask, emu::Site site) {
  return detail::Collect<mk_u32>(emu::Op::kBallot, predicate ? 1u : 0u, 0, 0, mask, site);
}
inline bool All(bool predicate, mk_u32 mask, emu::Site site) {
  return detail::Collect<mk_u32>(emu::Op::kAll, predicate ? 1u : 0u, 0, 0, mask, site) != 0;
}
inline bool Any(bool predicate, mk_u32 mask, emu::Site site) {
  return detail::Collect<mk_u32>(emu::Op::kAny, predicate ? 1u : 0u, 0, 0, mask, site) != 0;
}
inline mk_u32 MatchAny(mk_u32 value, mk_u32 mask, emu::Site site) {
  return detail::Collect<mk_u32>(emu::Op::kMatchAny, value, 0, 0, mask, site);
}

template <class T>
T ReduceAdd(T value, mk_u32 mask, emu::Site site) {
  return detail::Collect(emu::Op::kReduceAdd, value, 0, detail::kIsSigned<T>, mask, site);
}
template <class T>
T ReduceMin(T value, mk_u32 mask, emu::Site site) {
  return detail::Collect(emu::Op::kReduceMin, value, 0, detail::kIsSigned<T>, mask, site);
}
template <class T>
T ReduceMax(T value, mk_u32 mask, emu::Site site) {
  return detail::Collect(emu::Op::kReduceMax, value, 0, detail::kIsSigned<T>, mask, site);
}
inline mk_u32 ReduceAnd(mk_u32 value, mk_u32 mask, emu::Site site) {
  return detail::Collect(emu::Op::kReduceAnd, value, 0, 0, mask, site);
}
inline mk_u32 ReduceOr(mk_u32 value, mk_u32 mask, emu::Site site) {
  return detail::Collect(emu::Op::kReduceOr, value, 0, 0, mask, site);
}
inline mk_u32 ReduceXor(mk_u32 value, mk_u32 mask, emu::Site site) {
  return detail::Collect(emu::Op::kReduceXor, value, 0, 0, mask, site);
}

template <int kCount>
void LoadMatrix(mk_u32 (&d)[kCount], const void* row, emu::Site site) {
  detail::LoadMatrices<kCount>(emu::Op::kLoadMatrix, d, row, site);
}
template <int kCount>
void LoadMatrixTransposed(mk_u32 (&d)[kCount], const void* row, emu::Site site) {
  detail::LoadMatrices<kCount>(emu::Op::kLoadMatrixTransposed, d, row, site);
}

inline void MmaF16(float (&d)[4], const mk_u32 (&a)[4], const mk_u32 (&b)[2], const float (&c)[4],
                   emu::Site site) {
  detail::Mma(emu::Op::kMmaF16, d, a, b, c, site);
}
inline void MmaBf16(float (&d)[4], const mk_u32 (&a)[4], const mk_u32 (&b)[2], const float (&c)[4],
                    emu::Site site) {
  detail::Mma(emu::Op::kMmaBf16, d, a, b, c, site);
}
inline void MmaTf32(float (&d)[4], const mk_u32 (&a)[4], const mk_u32 (&b)[2], const float (&c)[4],
                    emu::Site site) {
  detail::Mma(emu::Op::kMmaTf32, d, a, b, c, site);
}
inline void MmaS8(mk_i32 (&d)[4], const mk_u32 (&a)[4], const mk_u32 (&b)[2], const mk_i32 (&c)[4],
                  emu::Site site) {
  detail::Mma(emu::Op::kMmaS8, d, a, b, c, site);
}

template <int kBytes>
void CopyAsync(void* shared, const void* global, int source_bytes, emu::Site site) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "4, 8 or 16 bytes");
  void* to;
  const void* from;
  if (emu::Current()->services->copy_async(emu::Current(), shared, global, kBytes,
                                           static_cast<mk_u32>(source_bytes), site, &to, &from)) {
    detail::CopyWords(to, from, kBytes);
  }
}
inline void CopyAsyncCommit(emu::Site site) {
  emu::Current()->services->copy_commit(emu::Current(), site);
}
template <int kPending>
void CopyAsyncWait(emu::Site site) {
  void* to;
  const void* from;
  mk_u32 bytes;
  while (emu::Current()->services->copy_wait(emu::Current(), kPending, site, &to, &from, &bytes)) {
    detail::CopyWords(to, from, bytes);
  }
}

template <class T>
T LoadReadOnly(const T* p, emu::Site site) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16,
                "2, 4, 8 or 16 bytes");
  T value;
  __builtin_memcpy(&value,
                   emu::Current()->services->access(emu::Current(), p, sizeof(T),
                                                    emu::Access::kLoadReadOnly, site),
                   sizeof(T));
  return value;
}
template <class T>
void StoreStreaming(T* p, T value, emu::Site site) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16,
                "2, 4, 8 or 16 bytes");
  __builtin_memcpy(
      emu::Current()->services->access(emu::Current(), p, sizeof(T), emu::Access::kStore, site),
      &value, sizeof(T));
}

inline float ToFloat(half h) { return HalfBitsToFloat(h.bits); }
inline float ToFloat(bfloat16 b) { return Bfloat16BitsToFloat(b.bits); }
inline half ToHalf(float f) { return {FloatToHalfBits(f)}; }
inline bfloat16 ToBfloat16(float f) { return {FloatToBfloat16Bits(f)}; }
inline mk_u32 ToTf32(float f) {
  const mk_u32 bits = BitsOf(f);
  if ((bits & 0x7f800000u) == 0x7f800000u) return (bits & 0x007fffffu) != 0 ? 0x7fffffffu : bits;
  return (bits + 0x1000u) & ~0x1fffu;
}
inline mk_u32 PackHalf2(float low, float high) {
  return mk_u32(FloatToHalfBits(low)) | mk_u32(FloatToHalfBits(high)) << 16;
}
inline mk_u32 PackBfloat162(float low, float high) {
  return mk_u32(FloatToBfloat16Bits(low)) | mk_u32(FloatToBfloat16Bits(high)) << 16;
}
// A sum or product of two halves is rounded once: binary32 has more than twice their digits.
inline mk_u32 AddHalf2(mk_u32 a, mk_u32 b) {
  return PackHalf2(HalfBitsToFloat(mk_u16(a)) + HalfBitsToFloat(mk_u16(b)),
                   HalfBitsToFloat(mk_u16(a >> 16)) + HalfBitsToFloat(mk_u16(b >> 16)));
}
inline mk_u32 MulHalf2(mk_u32 a, mk_u32 b) {
  return PackHalf2(HalfBitsToFloat(mk_u16(a)) * HalfBitsToFloat(mk_u16(b)),
                   HalfBitsToFloat(mk_u16(a >> 16)) * HalfBitsToFloat(mk_u16(b >> 16)));
}
inline mk_u32 FmaHalf2(mk_u32 a, mk_u32 b, mk_u32 c) {
  return mk_u32(FmaHalfBits(mk_u16(a), mk_u16(b), mk_u16(c))) |
         mk_u32(FmaHalfBits(mk_u16(a >> 16), mk_u16(b >> 16), mk_u16(c >> 16))) << 16;
}

inline mk_u32 FloatBits(float f) { return BitsOf(f); }
inline float FloatFromBits(mk_u32 bits) { return FloatOf(bits); }
inline float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float Exp2Approx(float x) { return __builtin_exp2f(x); }
inline float Log2Approx(float x) { return __builtin_log2f(x); }
inline float RcpApprox(float x) { return 1.0f / x; }
inline float RsqrtApprox(float x) { return 1.0f / __builtin_sqrtf(x); }
inline float TanhApprox(float x) { return __builtin_tanhf(x); }
inline float Sqrt(float x) { return __builtin_sqrtf(x); }

inline int LowestBit(mk_u32 bits) { return bits == 0 ? -1 : __builtin_ctz(bits); }
inline int CountBits(mk_u32 bits) { return __builtin_popcount(bits); }

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_DEVICE_PTX_EMULATED_H_
