// A CUDA driver for tests: a `libcuda.so.1` of our own that has every entry point the project
// calls, over host memory, with "kernels" that are host functions. It is stricter than a driver:
//
//  - every argument and every order of calls is checked; what a driver would let pass or crash on
//  is
//    kept as a violation, which tests read at the end;
//  - device addresses cannot be followed by the host, and no handle or address is ever used twice,
//    so that use after free or unload is always seen;
//  - work on a stream happens at the wait for it and not before, so that a missing wait is seen;
//  - any call can be told to fail with any result, and after a sticky one all calls fail.
//
// What it does not model: time, several engines at once, what a real driver allows beyond this.
// Source: ours.
#ifndef MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_CUDA_H_
#define MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_CUDA_H_

#include <cstddef>
#include <cstdint>

namespace mk {

struct FakeLaunch {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  // The host's view of device memory, for the kernel alone. Null, and the launch is an illegal
  // access, where the range is not inside one live allocation.
  void* (*memory)(const void* device, size_t size_bytes);
};
using FakeKernel = void (*)(const FakeLaunch& launch, const void* params);

struct FakeMachine {
  int driver_version = 12060;
  int devices = 1;
  int sm = 87;
  int integrated = 1;
  int multiprocessors = 8;
  int shared_per_block = 163 << 10;
  uint64_t memory_bytes = uint64_t{1} << 30;  // what cuMemAlloc gives in all
  uint64_t pinned_bytes = uint64_t{1} << 30;  // what cuMemHostAlloc gives in all
};

// What lives now.
struct FakeCounts {
  uint64_t contexts;  // retained
  uint64_t allocations, allocated_bytes;
  uint64_t pinned, pinned_bytes;
  uint64_t streams, events, modules, graphs, graph_execs;
  uint64_t pageable_copies;  // since the reset: asynchronous copies from or to memory not pinned
  uint64_t launches, graph_launches;  // since the reset: executed
  uint64_t pending;                   // work on streams that has not been waited for
  uint64_t violations;
};

// Any thread. Strings live until the next call of the table.
struct FakeCudaControl {
  uint32_t struct_size;
  // Back to the beginning: no objects, no log, no failure ordered, the machine given, kernels kept.
  void (*reset)(const FakeMachine* machine);
  void (*counts)(FakeCounts* counts);
  const char* (*violation)(uint64_t index);
  // The calls since the reset, by symbol.
  uint64_t (*call_count)();
  const char* (*call)(uint64_t index);
  // Orders the failure of call number `index` of the log (to come), or of the `nth` (from 1) call
  // of `symbol` from now on.
  void (*fail_call)(uint64_t index, int result);
  void (*fail_nth)(const char* symbol, uint64_t nth, int result);
  // `static_shared`, `most_threads`: what the function's attributes say.
  void (*register_kernel)(const char* name, uint32_t params_bytes, uint32_t static_shared,
                          uint32_t most_threads, FakeKernel kernel);
};

}  // namespace mk

// The one symbol beside the driver's own.
extern "C" const mk::FakeCudaControl* fake_cuda_control();

// For programs that no test can reach into, these variables are read when the library is loaded:
//   CUDA_FAKE_VERSION, CUDA_FAKE_DEVICES   as in FakeMachine
//   CUDA_FAKE_FAIL=symbol:nth:result       as fail_nth
//   CUDA_FAKE_KERNELS=path                 a shared object whose `fake_cuda_register` is called
//   CUDA_FAKE_REPORT=path                  <path>.<pid> gets counts and violations at the end
extern "C" void fake_cuda_register(const mk::FakeCudaControl* control);

#endif  // MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_CUDA_H_
