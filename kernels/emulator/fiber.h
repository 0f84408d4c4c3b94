// Fibers: stacks and switches over Boost.Context, announced to AddressSanitizer and
// ThreadSanitizer.
//
// To a thread sanitizer a switch orders nothing: whatever orders two fibers must be said by Release
// and Acquire.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_FIBER_H_
#define MERGEKERNEL_KERNELS_EMULATOR_FIBER_H_

#include <cstddef>
#include <cstdint>

namespace mk {
namespace emu {

// Equally large stacks in one mapping, each with a page behind it that faults.
class StackPool {
 public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  // At least `count` stacks of `bytes` each. False where the system gives no memory. Stacks of
  // before may move: REQUIRES that none is in use.
  bool Reserve(uint32_t count, size_t bytes);
  void* Bottom(uint32_t index) const;  // lowest address
  size_t bytes() const { return bytes_; }

 private:
  void Release();
  char* base_ = nullptr;
  size_t bytes_ = 0, pitch_ = 0;
  uint32_t count_ = 0;
};

// One flow of control. The one that runs a launch has a Fiber too, without a stack of the pool.
struct Fiber {
  void* context = nullptr;  // where it goes on, while it does not run
  const void* stack_bottom = nullptr;
  size_t stack_bytes = 0;
  void* asan_fake_stack = nullptr;
  void* tsan_fiber = nullptr;
  void (*entry)(void* argument) = nullptr;
  void* argument = nullptr;
};

// Makes `fiber` ready to run entry(argument) on stack `index`; the entry must not return but switch
// away for good.
void StartFiber(Fiber* fiber, const StackPool& stacks, uint32_t index, void (*entry)(void*),
                void* argument);

// The calling flow of control becomes `fiber`.
void AdoptThread(Fiber* fiber);

// Leaves `from` for `to`. `for_good`: nobody will switch to `from` again.
void SwitchFiber(Fiber* from, Fiber* to, bool for_good = false);

// Gives back what a thread sanitizer holds for a fiber, which else serves the next StartFiber. An
// abandoned one stands amid its calls, and the sanitizer refuses to end it: that is left to the end
// of the process.
void EndFiber(Fiber* fiber, bool abandoned);

// Between these a thread sanitizer does not look at what the calling fiber does: it would see the
// emulator's own memory, through the library functions that it intercepts. A switch for good ends
// it.
void BeginUnseen();
void EndUnseen();

// For a thread sanitizer: what happened before Release(key) happens before what follows a later
// Acquire(key).
void Release(void* key);
void Acquire(void* key);

}  // namespace emu
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_FIBER_H_
