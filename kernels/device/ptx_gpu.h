// The GPU's branch of ptx.h: inline assembly and the compiler's intrinsics. Included by ptx.h
// alone.
#ifndef MERGEKERNEL_KERNELS_DEVICE_PTX_GPU_H_
#define MERGEKERNEL_KERNELS_DEVICE_PTX_GPU_H_

#include "kernels/device/device.h"
#include "kernels/device/types.h"

namespace mk {
namespace device {
namespace detail {

MK_DEVICE mk_u32 Bits(float v) { return __float_as_uint(v); }
MK_DEVICE mk_u32 Bits(mk_u32 v) { return v; }
MK_DEVICE mk_u32 Bits(mk_i32 v) { return static_cast<mk_u32>(v); }

MK_DEVICE mk_u32 SharedAddress(const void* p) {
  return static_cast<mk_u32>(__cvta_generic_to_shared(p));
}

}  // namespace detail

MK_DEVICE void SyncThreads() { __syncthreads(); }
MK_DEVICE int SyncThreadsCount(bool predicate) { return __syncthreads_count(predicate); }
MK_DEVICE bool SyncThreadsAnd(bool predicate) { return __syncthreads_and(predicate) != 0; }
MK_DEVICE bool SyncThreadsOr(bool predicate) { return __syncthreads_or(predicate) != 0; }
MK_DEVICE void SyncWarp(mk_u32 mask) { __syncwarp(mask); }
MK_DEVICE void SyncWarp() { __syncwarp(); }

MK_DEVICE void BarrierSync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
MK_DEVICE void BarrierArrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

MK_DEVICE void FenceDevice() { __threadfence(); }
MK_DEVICE void FenceBlock() { __threadfence_block(); }

template <class T>
MK_DEVICE T Shuffle(T value, int source, int width, mk_u32 mask) {
  return __shfl_sync(mask, value, source, width);
}
template <class T>
MK_DEVICE T ShuffleUp(T value, int delta, int width, mk_u32 mask) {
  return __shfl_up_sync(mask, value, delta, width);
}
template <class T>
MK_DEVICE T ShuffleDown(T value, int delta, int width, mk_u32 mask) {
  return __shfl_down_sync(mask, value, delta, width);
}
template <class T>
MK_DEVICE T ShuffleXor(T value, int lane_mask, int width, mk_u32 mask) {
  return __shfl_xor_sync(mask, value, lane_mask, width);
}

MK_DEVICE mk_u32 Ballot(bool predicate, mk_u32 mask) { return __ballot_sync(mask, predicate); }
MK_DEVICE bool All(bool predicate, mk_u32 mask) { return __all_sync(mask, predicate) != 0; }
MK_DEVICE bool Any(bool predicate, mk_u32 mask) { return __any_sync(mask, predicate) != 0; }
MK_DEVICE mk_u32 MatchAny(mk_u32 value, mk_u32 mask) { return __match_any_sync(mask, value); }

template <class T>
MK_DEVICE T ReduceAdd(T value, mk_u32 mask) {
  return __reduce_add_sync(mask, value);
}
template <class T>
MK_DEVICE T ReduceMin(T value, mk_u32 mask) {
  return __reduce_min_sync(mask, value);
}
template <class T>
MK_DEVICE T ReduceMax(T value, mk_u32 mask) {
  return __reduce_max_sync(mask, value);
}
MK_DEVICE mk_u32 ReduceAnd(mk_u32 value, mk_u32 mask) { return __reduce_and_sync(mask, value); }
MK_DEVICE mk_u32 ReduceOr(mk_u32 value, mk_u32 mask) { return __reduce_or_sync(mask, value); }
MK_DEVICE mk_u32 ReduceXor(mk_u32 value, mk_u32 mask) { return __reduce_xor_sync(mask, value); }

template <int kCount>
MK_DEVICE void LoadMatrix(mk_u32 (&d)[kCount], const void* row) {
  static_assert(kCount == 1 || kCount == 2 || kCount == 4, "1, 2 or 4 matrices");
  const mk_u32 address = detail::SharedAddress(row);
  if constexpr (kCount == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(d[0])
                 : "r"(address)
                 : "memory");
  } else if constexpr (kCount == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(address)
                 : "memory");
  }
}

template <int kCount>
MK_DEVICE void LoadMatrixTransposed(mk_u32 (&d)[kCount], const void* row) {
  static_assert(kCount == 1 || kCount == 2 || kCount == 4, "1, 2 or 4 matrices");
  const mk_u32 address = detail::SharedAddress(row);
  if constexpr (kCount == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(d[0])
                 : "r"(address)
                 : "memory");
  } else if constexpr (kCount == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(address)
                 : "memory");
  }
}

#define MK_MMA_F32(name, instruction)                                                           \
  MK_DEVICE void name(float(&d)[4], const mk_u32(&a)[4], const mk_u32(&b)[2],                   \
                      const float(&c)[4]) {                                                     \
    asm volatile(instruction                                                                    \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"         \
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), \
                   "f"(c[1]), "f"(c[2]), "f"(c[3]));                                            \
  }
MK_MMA_F32(MmaF16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
MK_MMA_F32(MmaBf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
MK_MMA_F32(MmaTf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
#undef MK_MMA_F32

MK_DEVICE void MmaS8(mk_i32 (&d)[4], const mk_u32 (&a)[4], const mk_u32 (&b)[2],
                     const mk_i32 (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%10, %11, %12, "
      "%13};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]),
        "r"(c[2]), "r"(c[3]));
}

template <int kBytes>
MK_DEVICE void CopyAsync(void* shared, const void* global, int source_bytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "4, 8 or 16 bytes");
  if constexpr (kBytes == 16) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(detail::SharedAddress(shared)),
        "l"(global), "r"(source_bytes)
        : "memory");
  } else {
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(detail::SharedAddress(shared)),
        "l"(global), "n"(kBytes), "r"(source_bytes)
        : "memory");
  }
}
MK_DEVICE void CopyAsyncCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
MK_DEVICE void CopyAsyncWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

template <class T>
MK_DEVICE T LoadReadOnly(const T* p) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16,
                "2, 4, 8 or 16 bytes");
  T value;
  if constexpr (sizeof(T) == 2) {
    mk_u16 w;
    asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(w) : "l"(p));
    memcpy(&value, &w, sizeof(value));
  } else if constexpr (sizeof(T) == 4) {
    mk_u32 w;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(w) : "l"(p));
    memcpy(&value, &w, sizeof(value));
  } else if constexpr (sizeof(T) == 8) {
    mk_u32 w[2];
    asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(p));
    memcpy(&value, w, sizeof(value));
  } else {
    mk_u32 w[4];
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "l"(p));
    memcpy(&value, w, sizeof(value));
  }
  return value;
}

template <class T>
MK_DEVICE void StoreStreaming(T* p, T value) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16,
                "2, 4, 8 or 16 bytes");
  if constexpr (sizeof(T) == 2) {
    mk_u16 w;
    memcpy(&w, &value, sizeof(w));
    asm volatile("st.global.cs.u16 [%0], %1;" ::"l"(p), "h"(w) : "memory");
  } else if constexpr (sizeof(T) == 4) {
    mk_u32 w;
    memcpy(&w, &value, sizeof(w));
    asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(p), "r"(w) : "memory");
  } else if constexpr (sizeof(T) == 8) {
    mk_u32 w[2];
    memcpy(w, &value, sizeof(w));
    asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(w[0]), "r"(w[1]) : "memory");
  } else {
    mk_u32 w[4];
    memcpy(w, &value, sizeof(w));
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w[0]), "r"(w[1]),
                 "r"(w[2]), "r"(w[3])
                 : "memory");
  }
}

MK_DEVICE float ToFloat(half h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
  return f;
}
MK_DEVICE float ToFloat(bfloat16 b) { return __uint_as_float(static_cast<mk_u32>(b.bits) << 16); }
MK_DEVICE half ToHalf(float f) {
  half h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
  return h;
}
MK_DEVICE bfloat16 ToBfloat16(float f) {
  bfloat16 b;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b.bits) : "f"(f));
  return b;
}
MK_DEVICE mk_u32 ToTf32(float f) {
  mk_u32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(f));
  return bits;
}
MK_DEVICE mk_u32 PackHalf2(float low, float high) {
  mk_u32 packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
MK_DEVICE mk_u32 PackBfloat162(float low, float high) {
  mk_u32 packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
MK_DEVICE mk_u32 AddHalf2(mk_u32 a, mk_u32 b) {
  mk_u32 d;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
MK_DEVICE mk_u32 MulHalf2(mk_u32 a, mk_u32 b) {
  mk_u32 d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
MK_DEVICE mk_u32 FmaHalf2(mk_u32 a, mk_u32 b, mk_u32 c) {
  mk_u32 d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

MK_DEVICE mk_u32 FloatBits(float f) { return __float_as_uint(f); }
MK_DEVICE float FloatFromBits(mk_u32 bits) { return __uint_as_float(bits); }
MK_DEVICE float Fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
MK_DEVICE float Exp2Approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
MK_DEVICE float Log2Approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
MK_DEVICE float RcpApprox(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
MK_DEVICE float RsqrtApprox(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
MK_DEVICE float TanhApprox(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
MK_DEVICE float Sqrt(float x) { return __fsqrt_rn(x); }

MK_DEVICE int LowestBit(mk_u32 bits) { return __ffs(static_cast<int>(bits)) - 1; }
MK_DEVICE int CountBits(mk_u32 bits) { return __popc(bits); }

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_DEVICE_PTX_GPU_H_
