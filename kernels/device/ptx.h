// All that device code says in PTX, as functions: the one header with inline assembly (in
// ptx_gpu.h), and the same functions over the emulator (ptx_emulated.h). Needs sm_80.
//
// A collective must be reached by every lane that its mask names, at the same place; lanes that
// have exited are not waited for. None of the collectives but SyncWarp orders memory.
//
// Fragments are those of the PTX manual. With g = lane / 4 and t = lane % 4, m16n8k16 of 16-bit
// elements:
//   a[0] = A[g][2t, 2t+1]   a[1] = A[g+8][2t, 2t+1]   a[2] = A[g][2t+8, 2t+9]   a[3] = A[g+8][2t+8,
//   2t+9] b[0] = B[2t, 2t+1][g]   b[1] = B[2t+8, 2t+9][g] c[0] = C[g][2t]  c[1] = C[g][2t+1]  c[2]
//   = C[g+8][2t]  c[3] = C[g+8][2t+1]
// The lower-numbered element of a pair is in the low half of its word.
#ifndef MERGEKERNEL_KERNELS_DEVICE_PTX_H_
#define MERGEKERNEL_KERNELS_DEVICE_PTX_H_

#include "kernels/device/device.h"
#include "kernels/device/types.h"

namespace mk {
namespace device {

// ---- Barriers. Each orders shared and global memory among the threads that take part.

MK_DEVICE void SyncThreads(
    MK_ONLY_SITE);  // all of the block; threads that have exited are not waited for
MK_DEVICE int SyncThreadsCount(
    bool predicate MK_SITE);  // ... and in how many threads `predicate` holds
MK_DEVICE bool SyncThreadsAnd(bool predicate MK_SITE);
MK_DEVICE bool SyncThreadsOr(bool predicate MK_SITE);
MK_DEVICE void SyncWarp(mk_u32 mask MK_SITE);
MK_DEVICE void SyncWarp(MK_ONLY_SITE);  // all 32 lanes

// Named barriers, id 1 to 15, completed by `threads` threads (a multiple of 32), by whole warps.
// Arrive does not wait.
MK_DEVICE void BarrierSync(int id, int threads MK_SITE);
MK_DEVICE void BarrierArrive(int id, int threads MK_SITE);

// Orders this thread's earlier accesses before its later ones, for all who see the later ones.
MK_DEVICE void FenceDevice(MK_ONLY_SITE);
MK_DEVICE void FenceBlock(MK_ONLY_SITE);

// ---- Within a warp. T is float, mk_u32 or mk_i32. `width` (a power of two up to 32) cuts the warp
// into segments.

template <class T>
MK_DEVICE T Shuffle(T value, int source, int width = kWarpSize, mk_u32 mask = kFullMask MK_SITE);
template <class T>
MK_DEVICE T ShuffleUp(T value, int delta, int width = kWarpSize, mk_u32 mask = kFullMask MK_SITE);
template <class T>
MK_DEVICE T ShuffleDown(T value, int delta, int width = kWarpSize, mk_u32 mask = kFullMask MK_SITE);
template <class T>
MK_DEVICE T ShuffleXor(T value, int lane_mask, int width = kWarpSize,
                       mk_u32 mask = kFullMask MK_SITE);

MK_DEVICE mk_u32 Ballot(bool predicate, mk_u32 mask = kFullMask MK_SITE);
MK_DEVICE bool All(bool predicate, mk_u32 mask = kFullMask MK_SITE);
MK_DEVICE bool Any(bool predicate, mk_u32 mask = kFullMask MK_SITE);
MK_DEVICE mk_u32 MatchAny(mk_u32 value,
                          mk_u32 mask = kFullMask MK_SITE);  // the lanes that hold the same value

// redux.sync. T is mk_u32 or mk_i32; and, or, xor are for mk_u32.
template <class T>
MK_DEVICE T ReduceAdd(T value, mk_u32 mask = kFullMask MK_SITE);
template <class T>
MK_DEVICE T ReduceMin(T value, mk_u32 mask = kFullMask MK_SITE);
template <class T>
MK_DEVICE T ReduceMax(T value, mk_u32 mask = kFullMask MK_SITE);
MK_DEVICE mk_u32 ReduceAnd(mk_u32 value, mk_u32 mask = kFullMask MK_SITE);
MK_DEVICE mk_u32 ReduceOr(mk_u32 value, mk_u32 mask = kFullMask MK_SITE);
MK_DEVICE mk_u32 ReduceXor(mk_u32 value, mk_u32 mask = kFullMask MK_SITE);

// ---- Tensor cores. The whole warp.

// ldmatrix: kCount (1, 2, 4) matrices of 8 rows of 16 bytes. Lane i names row i % 8 of matrix i /
// 8, 16-byte aligned, in shared memory; lanes from 8 kCount on need not. Lane i gets d[m] = row i /
// 4, columns 2 (i % 4) and the next, of matrix m; transposed: row 2 (i % 4) and the next, column i
// / 4.
template <int kCount>
MK_DEVICE void LoadMatrix(mk_u32 (&d)[kCount], const void* row MK_SITE);
template <int kCount>
MK_DEVICE void LoadMatrixTransposed(mk_u32 (&d)[kCount], const void* row MK_SITE);

// d = a b + c. The order of accumulation within one call differs between devices: compare with a
// tolerance.
MK_DEVICE void MmaF16(float (&d)[4], const mk_u32 (&a)[4], const mk_u32 (&b)[2],
                      const float (&c)[4] MK_SITE);
MK_DEVICE void MmaBf16(float (&d)[4], const mk_u32 (&a)[4], const mk_u32 (&b)[2],
                       const float (&c)[4] MK_SITE);
// m16n8k8: a[0] = A[g][t], a[1] = A[g+8][t], a[2] = A[g][t+4], a[3] = A[g+8][t+4]; b[0] = B[t][g],
// b[1] = B[t+4][g]. The low 13 bits of each operand are ignored; ToTf32 rounds.
MK_DEVICE void MmaTf32(float (&d)[4], const mk_u32 (&a)[4], const mk_u32 (&b)[2],
                       const float (&c)[4] MK_SITE);
// m16n8k32, signed bytes: a[0] = A[g][4t..4t+3], a[1] = A[g+8][..], a[2] = A[g][4t+16..], a[3] =
// A[g+8][4t+16..]; b[0] = B[4t..4t+3][g], b[1] = B[4t+16..][g].
MK_DEVICE void MmaS8(mk_i32 (&d)[4], const mk_u32 (&a)[4], const mk_u32 (&b)[2],
                     const mk_i32 (&c)[4] MK_SITE);

// ---- cp.async: copies of kBytes (4, 8 or 16; both addresses aligned to it) from device to shared
// memory, of which the first `source_bytes` are read and the rest become zero. 16 bytes go past L1.
// What was copied may be read by this thread after the wait that covers it, by others after a
// barrier behind that wait.

template <int kBytes>
MK_DEVICE void CopyAsync(void* shared, const void* global, int source_bytes = kBytes MK_SITE);
MK_DEVICE void CopyAsyncCommit(MK_ONLY_SITE);  // closes this thread's group
template <int kPending>
MK_DEVICE void CopyAsyncWait(
    MK_ONLY_SITE);  // until at most the newest kPending groups are under way

// ---- Loads and stores with a hint. As Load and Store of memory.h.

template <class T>
MK_DEVICE T LoadReadOnly(const T* p MK_SITE);  // ld.global.nc: nobody writes it during the launch
template <class T>
MK_DEVICE void StoreStreaming(T* p, T value MK_SITE);  // st.global.cs: will not be read again soon

// ---- Arithmetic.

MK_DEVICE float ToFloat(half h);
MK_DEVICE float ToFloat(bfloat16 b);
MK_DEVICE half ToHalf(float f);          // to nearest even; overflow is infinite
MK_DEVICE bfloat16 ToBfloat16(float f);  // to nearest even
MK_DEVICE mk_u32 ToTf32(float f);        // to nearest, ties away
MK_DEVICE mk_u32 PackHalf2(float low, float high);
MK_DEVICE mk_u32 PackBfloat162(float low, float high);
// Two halves at once, each rounded once.
MK_DEVICE mk_u32 AddHalf2(mk_u32 a, mk_u32 b);
MK_DEVICE mk_u32 MulHalf2(mk_u32 a, mk_u32 b);
MK_DEVICE mk_u32 FmaHalf2(mk_u32 a, mk_u32 b, mk_u32 c);

MK_DEVICE mk_u32 FloatBits(float f);
MK_DEVICE float FloatFromBits(mk_u32 bits);
MK_DEVICE float Fma(float a, float b, float c);
// The hardware's approximations (about 2 ulp; exact in the emulator, so results differ within
// that).
MK_DEVICE float Exp2Approx(float x);
MK_DEVICE float Log2Approx(float x);
MK_DEVICE float RcpApprox(float x);
MK_DEVICE float RsqrtApprox(float x);
MK_DEVICE float TanhApprox(float x);  // absolute error up to 5e-4
MK_DEVICE float Sqrt(float x);        // to nearest

// 0 of 32 bits set: -1.
MK_DEVICE int LowestBit(mk_u32 bits);
MK_DEVICE int CountBits(mk_u32 bits);

}  // namespace device
}  // namespace mk

#if defined(MK_EMULATED)
#include "kernels/device/ptx_emulated.h"
#else
#include "kernels/device/ptx_gpu.h"
#endif

#endif  // MERGEKERNEL_KERNELS_DEVICE_PTX_H_
