// How device code reaches memory: plain loads, stores and atomics, on a GPU nothing but `*p`.
//
// T is trivially copyable, of 1, 2, 4, 8 or 16 bytes, and `p` is aligned to its size. Atomics are
// relaxed: they order nothing; FenceDevice (ptx.h) does.
#ifndef MERGEKERNEL_KERNELS_DEVICE_MEMORY_H_
#define MERGEKERNEL_KERNELS_DEVICE_MEMORY_H_

#include "kernels/device/device.h"

namespace mk {
namespace device {

#if defined(MK_EMULATED)

namespace detail {

template <class T>
void* Reach(const T* p, emu::Access kind, emu::Site site) {
  static_assert(sizeof(T) <= 16 && (sizeof(T) & (sizeof(T) - 1)) == 0, "1, 2, 4, 8 or 16 bytes");
  return emu::Current()->services->access(emu::Current(), p, sizeof(T), kind, site);
}

// One OS thread runs all of a block, so a plain read and write are atomic here; the builtins tell a
// thread sanitizer.
template <class T, class Combine>
T Update(T* p, emu::Site site, Combine combine) {
  T* memory = static_cast<T*>(Reach(p, emu::Access::kAtomic, site));
  T old;
  __atomic_load(memory, &old, __ATOMIC_RELAXED);
  T next = combine(old);
  __atomic_store(memory, &next, __ATOMIC_RELAXED);
  return old;
}

}  // namespace detail

template <class T>
T Load(const T* p, emu::Site site = emu::Site::Here()) {
  T value;
  const void* memory = detail::Reach(p, emu::Access::kLoad, site);
  __builtin_memcpy(&value, __builtin_assume_aligned(memory, sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void Store(T* p, T value, emu::Site site = emu::Site::Here()) {
  void* memory = detail::Reach(p, emu::Access::kStore, site);
  __builtin_memcpy(__builtin_assume_aligned(memory, sizeof(T)), &value, sizeof(T));
}

// T: float, mk_u32, mk_i32. Each returns what was there before.
template <class T>
T AtomicAdd(T* p, T value, emu::Site site = emu::Site::Here()) {
  return detail::Update(p, site, [value](T old) { return static_cast<T>(old + value); });
}
template <class T>
T AtomicExchange(T* p, T value, emu::Site site = emu::Site::Here()) {
  return detail::Update(p, site, [value](T) { return value; });
}
// T: mk_u32, mk_i32.
template <class T>
T AtomicMin(T* p, T value, emu::Site site = emu::Site::Here()) {
  return detail::Update(p, site, [value](T old) { return value < old ? value : old; });
}
template <class T>
T AtomicMax(T* p, T value, emu::Site site = emu::Site::Here()) {
  return detail::Update(p, site, [value](T old) { return old < value ? value : old; });
}
template <class T>
T AtomicOr(T* p, T value, emu::Site site = emu::Site::Here()) {
  return detail::Update(p, site, [value](T old) { return static_cast<T>(old | value); });
}
template <class T>
T AtomicCompareExchange(T* p, T expected, T value, emu::Site site = emu::Site::Here()) {
  return detail::Update(p, site,
                        [expected, value](T old) { return old == expected ? value : old; });
}

#else

template <class T>
MK_DEVICE T Load(const T* p) {
  return *p;
}
template <class T>
MK_DEVICE void Store(T* p, T value) {
  *p = value;
}
template <class T>
MK_DEVICE T AtomicAdd(T* p, T value) {
  return atomicAdd(p, value);
}
template <class T>
MK_DEVICE T AtomicExchange(T* p, T value) {
  return atomicExch(p, value);
}
template <class T>
MK_DEVICE T AtomicMin(T* p, T value) {
  return atomicMin(p, value);
}
template <class T>
MK_DEVICE T AtomicMax(T* p, T value) {
  return atomicMax(p, value);
}
template <class T>
MK_DEVICE T AtomicOr(T* p, T value) {
  return atomicOr(p, value);
}
template <class T>
MK_DEVICE T AtomicCompareExchange(T* p, T expected, T value) {
  return atomicCAS(p, expected, value);
}

#endif

// The same memory as another type, for wide accesses: Load(As<Words4>(p)). REQUIRES alignment for
// V.
template <class V, class T>
MK_DEVICE const V* As(const T* p) {
  return reinterpret_cast<const V*>(p);
}
template <class V, class T>
MK_DEVICE V* As(T* p) {
  return reinterpret_cast<V*>(p);
}

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_DEVICE_MEMORY_H_
