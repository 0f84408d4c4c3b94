#include "kernels/emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

// The context functions under boost::context::fiber: a fiber that is abandoned in a deadlock must
// not be unwound.
#include <boost/context/detail/fcontext.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define MK_ASAN_FIBERS 1
#endif

// Weak: this room is compiled without a thread sanitizer, and linked with one where the kernels are
// watched by it.
extern "C" {
void* __tsan_get_current_fiber() __attribute__((weak));
void* __tsan_create_fiber(unsigned flags) __attribute__((weak));
void __tsan_destroy_fiber(void* fiber) __attribute__((weak));
void __tsan_switch_to_fiber(void* fiber, unsigned flags) __attribute__((weak));
void __tsan_ignore_thread_begin() __attribute__((weak));
void __tsan_ignore_thread_end() __attribute__((weak));
void __tsan_acquire(void* address) __attribute__((weak));
void __tsan_release(void* address) __attribute__((weak));
}

namespace mk {
namespace emu {
namespace {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

constexpr unsigned kTsanNoSync = 1;

struct Jump {
  Fiber* from;
  Fiber* to;
};

// First thing after a switch: keeps where the other side stopped.
void Arrive(const transfer_t& transfer) {
  const Jump jump = *static_cast<const Jump*>(transfer.data);
  jump.from->context = transfer.fctx;
#ifdef MK_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(jump.to->asan_fake_stack, &jump.from->stack_bottom,
                                  &jump.from->stack_bytes);
#endif
}

void Trampoline(transfer_t transfer) {
  Fiber* self = static_cast<const Jump*>(transfer.data)->to;
  Arrive(transfer);
  self->entry(self->argument);
  __builtin_trap();
}

}  // namespace

StackPool::~StackPool() { Release(); }

void StackPool::Release() {
  if (base_ != nullptr) munmap(base_, pitch_ * count_);
  base_ = nullptr;
  count_ = 0;
}

bool StackPool::Reserve(uint32_t count, size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes = (bytes + page - 1) / page * page;
  if (count <= count_ && bytes == bytes_) return true;
  Release();
  bytes_ = bytes;
  pitch_ = bytes + page;
  void* memory = mmap(nullptr, pitch_ * count, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  base_ = static_cast<char*>(memory);
  count_ = count;
  for (uint32_t i = 0; i < count; ++i) {
    if (mprotect(base_ + i * pitch_, page, PROT_NONE) != 0) return false;
  }
  return true;
}

void* StackPool::Bottom(uint32_t index) const { return base_ + (index + 1) * pitch_ - bytes_; }

void StartFiber(Fiber* fiber, const StackPool& stacks, uint32_t index, void (*entry)(void*),
                void* argument) {
  // Stacks lie a power of two apart, so their tops would share cache sets: each starts a little
  // lower.
  const size_t colour = (index * size_t{1088}) % 8192 & ~size_t{63};
  char* bottom = static_cast<char*>(stacks.Bottom(index));
#ifdef MK_ASAN_FIBERS
  // The fiber before this one left frames behind, with their red zones: it switched away for good.
  __asan_unpoison_memory_region(bottom, stacks.bytes());
#endif
  fiber->stack_bottom = bottom;
  fiber->stack_bytes = stacks.bytes();
  fiber->asan_fake_stack = nullptr;
  fiber->entry = entry;
  fiber->argument = argument;
  fiber->context =
      make_fcontext(bottom + stacks.bytes() - colour, stacks.bytes() - colour, &Trampoline);
  if (fiber->tsan_fiber == nullptr && __tsan_create_fiber != nullptr) {
    fiber->tsan_fiber = __tsan_create_fiber(0);
  }
}

void AdoptThread(Fiber* fiber) {
  *fiber = Fiber{};
  if (__tsan_get_current_fiber != nullptr) fiber->tsan_fiber = __tsan_get_current_fiber();
}

void SwitchFiber(Fiber* from, Fiber* to, bool for_good) {
  Jump jump = {from, to};
#ifdef MK_ASAN_FIBERS
  __sanitizer_start_switch_fiber(for_good ? nullptr : &from->asan_fake_stack, to->stack_bottom,
                                 to->stack_bytes);
#endif
  if (for_good) EndUnseen();
  if (__tsan_switch_to_fiber != nullptr) __tsan_switch_to_fiber(to->tsan_fiber, kTsanNoSync);
  Arrive(jump_fcontext(to->context, &jump));
}

void EndFiber(Fiber* fiber, bool abandoned) {
  if (fiber->tsan_fiber != nullptr && !abandoned) __tsan_destroy_fiber(fiber->tsan_fiber);
  fiber->tsan_fiber = nullptr;
}

void BeginUnseen() {
  if (__tsan_ignore_thread_begin != nullptr) __tsan_ignore_thread_begin();
}

void EndUnseen() {
  if (__tsan_ignore_thread_end != nullptr) __tsan_ignore_thread_end();
}

void Release(void* key) {
  if (__tsan_release != nullptr) __tsan_release(key);
}

void Acquire(void* key) {
  if (__tsan_acquire != nullptr) __tsan_acquire(key);
}

}  // namespace emu
}  // namespace mk
