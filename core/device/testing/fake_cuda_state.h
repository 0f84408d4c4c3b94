// The insides of the fake driver.
#ifndef MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_CUDA_STATE_H_
#define MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_CUDA_STATE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/device/cuda/driver_types.h"
#include "core/device/testing/fake_cuda.h"

// The fake's signatures are those that the daemon calls: a definition that differs does not
// compile.
#define FAKE extern "C" __attribute__((visibility("default")))
#define FAKE_DECLARE(member, symbol, parameters) FAKE mk::cu::Result symbol parameters;
MK_CUDA_ENTRY_POINTS(FAKE_DECLARE)
#undef FAKE_DECLARE

namespace mk {
namespace fake {

using cu::Result;
using Handle = uint64_t;

struct KernelEntry {
  uint32_t params_bytes;
  uint32_t static_shared;
  uint32_t most_threads;
  FakeKernel run;
};

struct Allocation {
  uint64_t size = 0;
  std::unique_ptr<char[]> bytes;
  Handle context = 0;
};

// A piece of work. `run` is called with the state locked.
struct Op {
  std::function<void()> run;
  const char* pinned = nullptr;  // the pinned memory it reads or writes, if any
  Handle function = 0;           // of a launch
};

struct StreamObject {
  Handle context = 0;
  std::deque<Op> pending;
  bool capturing = false;
  bool capture_broken = false;
  std::thread::id capturing_thread;
  std::vector<Op> captured;
};

struct EventObject {
  Handle context = 0;
  bool timing = false;
  Handle recorded_on = 0;  // the stream; 0: never recorded
  uint64_t records = 0;    // how often recorded
  uint64_t completed = 0;  // how many of them have happened
  uint64_t time = 0;
};

struct ModuleObject {
  Handle context = 0;
  std::set<std::string> kernels;
};

struct FunctionObject {
  Handle module = 0;
  std::string name;
  int dynamic_shared = 0;  // the attribute; 0: never set
};

struct GraphObject {
  Handle context = 0;
  std::vector<Op> ops;
};

struct State {
  std::recursive_mutex mutex;
  FakeMachine machine;
  bool initialised = false;
  Result sticky = cu::kSuccess;
  std::map<std::string, KernelEntry> kernels;

  std::vector<std::string> log;
  std::vector<std::string> violations;
  int64_t fail_at = -1;
  Result fail_at_result = cu::kSuccess;
  std::string fail_symbol;
  uint64_t fail_countdown = 0;
  Result fail_symbol_result = cu::kSuccess;

  Handle next_handle = 0x1000;
  uint64_t next_address = uint64_t{0x0100} << 48;
  std::map<int, std::pair<Handle, int>> primary;  // device -> context and its count
  std::map<uint64_t, Allocation> allocations;     // by address
  std::map<char*, uint64_t> pinned;
  std::map<Handle, StreamObject> streams;
  std::map<Handle, EventObject> events;
  std::map<Handle, ModuleObject> modules;
  std::map<Handle, FunctionObject> functions;
  std::map<Handle, GraphObject> graphs, execs;
  uint64_t allocated_bytes = 0, pinned_bytes = 0, pageable_copies = 0;
  uint64_t launches = 0, graph_launches = 0, clock = 0;
};

State& TheState();
void Violation(const std::string& text);

enum Needs : unsigned {
  kNothing = 0,
  kInitialised = 1,
  kContext = 2 | kInitialised,
  kNoCapture = 4,  // not while this thread captures
  kAlways = 8,     // works after a sticky error too
};

// Logs the call, lets it fail where that was ordered, checks what it needs, and runs `body`.
Result Enter(const char* symbol, unsigned needs, const std::function<Result(State&)>& body);

// The context current on this thread; 0 without one.
Handle Current();

// Removes what the driver would: pending work up to the end, or to an event's record.
Result RunAll(State& s, StreamObject& stream);
Result RunUntil(State& s, StreamObject& stream, const std::function<bool()>& reached);
// The memory behind an address, or null where [address, +size) is not inside one allocation.
char* Memory(State& s, uint64_t address, uint64_t size);
// Whether `host` lies in pinned memory; its block's begin, or null.
char* PinnedBlock(State& s, const void* host);

template <typename Object, typename Pointer>
Object* Find(std::map<Handle, Object>& objects, Pointer handle, const char* what) {
  const auto found = objects.find(reinterpret_cast<Handle>(handle));
  if (found != objects.end()) return &found->second;
  Violation(std::string("a ") + what + " that is not there (destroyed, or never made)");
  return nullptr;
}

// The same, and it must be of this thread's context.
template <typename Object, typename Pointer>
Object* FindHere(std::map<Handle, Object>& objects, Pointer handle, const char* what) {
  Object* object = Find(objects, handle, what);
  if (object != nullptr && object->context != Current()) {
    Violation(std::string("a ") + what + " of another context");
    return nullptr;
  }
  return object;
}

}  // namespace fake
}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_CUDA_STATE_H_
