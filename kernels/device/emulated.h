// The contract between device code compiled for the CPU and kernels/emulator, which runs it.
//
// Device code reaches the emulator only through the table of functions below, so an emulated module
// may sit in a shared object that links nothing: it exports one `Module`, and the emulator hands it
// a `Thread` before a kernel's first statement. Kernels do not include this header; device.h does,
// where MK_EMULATED is defined.
//
// Addresses. A pointer that a kernel holds is never one that the CPU can follow: device memory has
// kGlobalTag in its high bits, shared memory kSharedTag. The accessors of memory.h and ptx.h take
// the tag off after the emulator has judged the access; an access that goes around them faults at
// once, on the host as well as in a kernel.
#ifndef MERGEKERNEL_KERNELS_DEVICE_EMULATED_H_
#define MERGEKERNEL_KERNELS_DEVICE_EMULATED_H_

#include "core/abi/mk_types.h"

namespace mk {
namespace emu {

inline constexpr mk_u64 kTagMask = mk_u64{0xffff} << 48;
inline constexpr mk_u64 kGlobalTag = mk_u64{0x0011} << 48;  // below it stands the host's address
inline constexpr mk_u64 kSharedTag = mk_u64{0x0022}
                                     << 48;  // below it stands the offset in the block's window

struct Dim3 {
  mk_u32 x = 1, y = 1, z = 1;
};

// Where in device code a call stands. As a default argument, `Site::Here()` is the caller's line.
struct Site {
  const char* file;
  mk_i32 line;
  static constexpr Site Here(const char* file = __builtin_FILE(), mk_i32 line = __builtin_LINE()) {
    return {file, line};
  }
};

enum class Access : mk_u32 { kLoad, kLoadReadOnly, kLoadMatrixRow, kStore, kAtomic };

enum class Barrier : mk_u32 { kSync, kArrive, kCount, kAnd, kOr };

// What a warp does together. The last lane to arrive does it for all.
enum class Op : mk_u32 {
  kSyncWarp,
  kShuffleIndex,
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kBallot,
  kAll,
  kAny,
  kMatchAny,
  kReduceAdd,
  kReduceMin,
  kReduceMax,
  kReduceAnd,
  kReduceOr,
  kReduceXor,
  kLoadMatrix,
  kLoadMatrixTransposed,
  kMmaF16,   // m16n8k16, fp32 accumulate
  kMmaBf16,  // m16n8k16, fp32 accumulate
  kMmaTf32,  // m16n8k8, fp32 accumulate
  kMmaS8,    // m16n8k32, int32 accumulate
};

// One lane's part of a collective. Lives on the lane's stack until the call returns.
struct Collective {
  Op op;
  mk_u32 mask;  // the lanes that take part
  mk_u32
      detail;   // shuffles: segment width; reductions: 1 where signed; ldmatrix: 1, 2 or 4 matrices
  mk_i32 lane;  // shuffles: source lane, delta or lane mask
  Site site;
  const mk_u32* in;  // shuffles, votes, reductions: [1]; mma: a, b, c one behind the other;
                     // ldmatrix: one row [4]
  mk_u32* out;       // [1]; mma: d [4]; ldmatrix: [detail]
};

struct Thread;

// What the emulator does for device code. Fields are only appended.
struct Services {
  mk_u32 struct_size;
  // Judges an access of `bytes` (1, 2, 4, 8 or 16) and returns the memory behind the address. Where
  // the access is not allowed it is reported, and the memory is a scratch area.
  void* (*access)(Thread*, const void* address, mk_u32 bytes, Access kind, Site site);
  void (*collective)(Thread*, const Collective* part);
  // `count` threads, 0 for all of the block. Returns the reduction of `predicate` for kCount, kAnd,
  // kOr.
  mk_u32 (*barrier)(Thread*, Barrier kind, mk_u32 id, mk_u32 count, mk_u32 predicate, Site site);
  // Static shared memory: the same address for the same key within a block.
  void* (*static_shared)(Thread*, const void* key, const char* name, mk_u32 bytes, mk_u32 align,
                         Site site);
  void* (*dynamic_shared)(Thread*, mk_u32 align, Site site);
  // An asynchronous copy of `bytes` to shared memory, of which the first `source_bytes` are read
  // and the rest is zero. True where it happens at once: the caller copies `bytes` from `*from` to
  // `*to`, so that a thread sanitizer sees who did it.
  bool (*copy_async)(Thread*, void* shared, const void* global, mk_u32 bytes, mk_u32 source_bytes,
                     Site site, void** to, const void** from);
  void (*copy_commit)(Thread*, Site site);
  // Takes the next copy that must have happened for all but the newest `pending` groups to be
  // complete; the caller copies. False: there is no more.
  bool (*copy_wait)(Thread*, mk_u32 pending, Site site, void** to, const void** from,
                    mk_u32* bytes);
  void (*fence)(Thread*, bool whole_device, Site site);
  // An assertion of device code failed. Does not return.
  void (*fail)(Thread*, const char* what, Site site);
};

// One CUDA thread as its code sees it. The emulator's own record begins with this.
struct Thread {
  Dim3 thread_index{}, block_index{}, block_size{}, grid_size{};
  mk_u32 linear = 0;  // in the block, x fastest
  const Services* services = nullptr;
};

struct Kernel {
  const char* name;
  mk_u32 params_bytes;
  void (*run)(const void* params);
};

// The one thing about a module that changes: which thread's code runs. The emulator sets it at each
// switch, and holds `busy` during a launch, so that launches on several OS threads take turns.
struct Running {
  Thread* thread;
  mk_u32 busy;
};

// What an emulated module exports.
struct Module {
  mk_u32 struct_size;
  mk_u32 services_bytes;  // sizeof(Services) that the module was compiled with
  const char* name;
  const Kernel* kernels;
  mk_u32 kernel_count;
  Running* running;
};

// The module that includes this: hidden, so that every shared object has its own. Not thread_local:
// that would outlive the unloading of a pack.
__attribute__((visibility("hidden"))) inline Running running = {nullptr, 0};

inline Thread* Current() { return running.thread; }

template <class Params, void (*kFunction)(Params)>
void RunKernel(const void* params) {
  kFunction(*static_cast<const Params*>(params));
}

template <class Function>
struct ParamsOf;
template <class Params>
struct ParamsOf<void (*)(Params)> {
  using Type = Params;
};

}  // namespace emu
}  // namespace mk

// One row of a module's table, from the kernel's function alone.
#define MK_EMULATED_KERNEL(function)                                                          \
  {                                                                                           \
#function, sizeof(::mk::emu::ParamsOf <decltype(&function)>::Type),                       \
        &::mk::emu::RunKernel < ::mk::emu::ParamsOf < decltype(&function)> ::Type, &function> \
  }

// Defines `symbol`, the module of the kernels listed. The build rule writes this line.
#define MK_EMULATED_MODULE(symbol, module_name, ...)                                \
  static const ::mk::emu::Kernel symbol##_kernels[] = {__VA_ARGS__};                \
  extern "C" __attribute__((visibility("default"))) const ::mk::emu::Module symbol; \
  extern "C" const ::mk::emu::Module symbol = {                                     \
      sizeof(::mk::emu::Module),                                                    \
      sizeof(::mk::emu::Services),                                                  \
      module_name,                                                                  \
      symbol##_kernels,                                                             \
      sizeof(symbol##_kernels) / sizeof(::mk::emu::Kernel),                         \
      &::mk::emu::running};

#endif  // MERGEKERNEL_KERNELS_DEVICE_EMULATED_H_
