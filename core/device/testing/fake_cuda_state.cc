// The fake driver's state, the way into every call, the control table, and the calls that ask.
#include "core/device/testing/fake_cuda_state.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <type_traits>

namespace mk {
namespace fake {
namespace {

thread_local Handle current_context = 0;

// The fake's own list: a test that compared the host's with itself would prove nothing.
bool Sticky(Result result) {
  switch (result) {
    case 4:
    case 214:
    case 220:
    case 226:
    case 700:
    case 702:
    case 709:
    case 710:
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:
    case 721:
    case 810:
    case 911:
    case 999:
      return true;
    default:
      return false;
  }
}

// The failure that was ordered for this call, or success.
Result Ordered(State& s, const char* symbol) {
  Result result = cu::kSuccess;
  if (s.fail_at >= 0 && s.log.size() == static_cast<uint64_t>(s.fail_at) + 1) {
    result = s.fail_at_result;
  }
  if (s.fail_countdown != 0 && s.fail_symbol == symbol && --s.fail_countdown == 0) {
    result = s.fail_symbol_result;
  }
  return result;
}

// The thread's own capture, if one runs: calls that a capture forbids break it.
StreamObject* CaptureOfThisThread(State& s) {
  for (auto& [handle, stream] : s.streams) {
    if (stream.capturing && stream.capturing_thread == std::this_thread::get_id()) return &stream;
  }
  return nullptr;
}

struct ErrorText {
  Result result;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "stub library"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for this device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX was compiled with a newer toolchain"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "driver and library versions differ"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture was invalidated"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "capture ended by another thread"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorText* FindError(Result result) {
  for (const ErrorText& error : kErrors) {
    if (error.result == result) return &error;
  }
  return nullptr;
}

void ReadEnvironment(State& s) {
  if (const char* version = std::getenv("CUDA_FAKE_VERSION")) {
    s.machine.driver_version = std::atoi(version);
  }
  if (const char* devices = std::getenv("CUDA_FAKE_DEVICES")) {
    s.machine.devices = std::atoi(devices);
  }
  if (const char* fail = std::getenv("CUDA_FAKE_FAIL")) {
    std::stringstream in(fail);
    std::string nth, result;
    std::getline(in, s.fail_symbol, ':');
    std::getline(in, nth, ':');
    std::getline(in, result, ':');
    s.fail_countdown = std::strtoull(nth.c_str(), nullptr, 10);
    s.fail_symbol_result = std::atoi(result.c_str());
  }
}

void LoadKernels() {
  const char* path = std::getenv("CUDA_FAKE_KERNELS");
  if (path == nullptr) return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  auto* fill =
      library == nullptr
          ? nullptr
          : reinterpret_cast<decltype(&fake_cuda_register)>(dlsym(library, "fake_cuda_register"));
  if (fill == nullptr) {
    Violation(std::string("CUDA_FAKE_KERNELS: ") + path);
    return;
  }
  fill(fake_cuda_control());
}

void Reset(const FakeMachine* machine) {
  State& s = TheState();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  s.machine = *machine;
  s.initialised = false;
  s.sticky = cu::kSuccess;
  s.log.clear();
  s.violations.clear();
  s.fail_at = -1;
  s.fail_countdown = 0;
  s.primary.clear();
  s.allocations.clear();
  for (auto& [block, size] : s.pinned) std::free(block);
  s.pinned.clear();
  s.streams.clear();
  s.events.clear();
  s.modules.clear();
  s.functions.clear();
  s.graphs.clear();
  s.execs.clear();
  s.allocated_bytes = s.pinned_bytes = s.pageable_copies = 0;
  s.launches = s.graph_launches = 0;
}

void Count(FakeCounts* counts) {
  State& s = TheState();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  *counts = {};
  for (const auto& [device, context] : s.primary) counts->contexts += context.second > 0;
  counts->allocations = s.allocations.size();
  counts->allocated_bytes = s.allocated_bytes;
  counts->pinned = s.pinned.size();
  counts->pinned_bytes = s.pinned_bytes;
  counts->streams = s.streams.size();
  counts->events = s.events.size();
  counts->modules = s.modules.size();
  counts->graphs = s.graphs.size();
  counts->graph_execs = s.execs.size();
  counts->pageable_copies = s.pageable_copies;
  counts->launches = s.launches;
  counts->graph_launches = s.graph_launches;
  for (const auto& [handle, stream] : s.streams) counts->pending += stream.pending.size();
  counts->violations = s.violations.size();
}

const char* At(const std::vector<std::string>& list, uint64_t index) {
  return index < list.size() ? list[index].c_str() : "";
}

// At the end of a process that no test can reach into.
struct Reporter {
  Reporter() {
    const char* path = std::getenv("CUDA_FAKE_REPORT");
    if (path != nullptr) path_ = std::string(path) + "." + std::to_string(getpid());
  }
  ~Reporter() {
    if (path_.empty()) return;
    FakeCounts c;
    Count(&c);
    std::ofstream out(path_);
    out << "contexts " << c.contexts << " allocations " << c.allocations << " pinned " << c.pinned
        << " streams " << c.streams << " events " << c.events << " modules " << c.modules
        << " graphs " << c.graphs << " graph_execs " << c.graph_execs << " pageable "
        << c.pageable_copies << " violations " << c.violations << "\n"
        << "launches " << c.launches << " graph_launches " << c.graph_launches << "\n";
    for (const std::string& violation : TheState().violations) out << violation << "\n";
  }
  std::string path_;
};

}  // namespace

State& TheState() {
  // Never destroyed: threads may still call when the process ends.
  static State* const state = [] {
    auto* made = new State;
    ReadEnvironment(*made);
    return made;
  }();
  return *state;
}

Reporter reporter;

Handle Current() { return current_context; }

void Violation(const std::string& text) {
  State& s = TheState();
  const std::string call = s.log.empty() ? "" : s.log.back() + ": ";
  s.violations.push_back(call + text);
}

Result Enter(const char* symbol, unsigned needs, const std::function<Result(State&)>& body) {
  State& s = TheState();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  s.log.push_back(symbol);
  const Result ordered = Ordered(s, symbol);
  if (ordered != cu::kSuccess) {
    if (Sticky(ordered)) s.sticky = ordered;
    return ordered;
  }
  if (s.sticky != cu::kSuccess && !(needs & kAlways)) return s.sticky;
  if ((needs & kInitialised) && !s.initialised) {
    Violation("before cuInit");
    return cu::kNotInitialized;
  }
  if ((needs & kContext) == kContext) {
    bool alive = false;
    for (const auto& [device, context] : s.primary) {
      alive = alive || (context.first == current_context && context.second > 0);
    }
    if (!alive) {
      Violation(current_context == 0 ? "without a context" : "in a context that is released");
      return current_context == 0 ? cu::kInvalidContext : cu::kContextIsDestroyed;
    }
  }
  if (needs & kNoCapture) {
    if (StreamObject* capture = CaptureOfThisThread(s)) {
      capture->capture_broken = true;
      return cu::kCaptureUnsupported;
    }
  }
  const Result result = body(s);
  if (Sticky(result)) s.sticky = result;
  return result;
}

}  // namespace fake
}  // namespace mk

using namespace mk;        // NOLINT: the driver's own names stand in the global namespace
using namespace mk::fake;  // NOLINT
using mk::cu::Result;

FAKE const FakeCudaControl* fake_cuda_control() {
  static const FakeCudaControl control = {
      sizeof(FakeCudaControl),
      &Reset,
      &Count,
      [](uint64_t index) { return At(TheState().violations, index); },
      []() -> uint64_t {
        std::lock_guard<std::recursive_mutex> lock(TheState().mutex);
        return TheState().log.size();
      },
      [](uint64_t index) { return At(TheState().log, index); },
      [](uint64_t index, int result) {
        TheState().fail_at = static_cast<int64_t>(index);
        TheState().fail_at_result = result;
      },
      [](const char* symbol, uint64_t nth, int result) {
        TheState().fail_symbol = symbol;
        TheState().fail_countdown = nth;
        TheState().fail_symbol_result = result;
      },
      [](const char* name, uint32_t params_bytes, uint32_t static_shared, uint32_t most_threads,
         FakeKernel kernel) {
        TheState().kernels[name] = {params_bytes, static_shared, most_threads, kernel};
      }};
  return &control;
}

FAKE Result cuInit(unsigned flags) {
  return Enter("cuInit", kNothing, [&](State& s) -> Result {
    if (flags != 0) return Violation("flags"), cu::kInvalidValue;
    if (s.machine.devices == 0) return cu::kNoDevice;
    if (!s.initialised) LoadKernels();
    s.initialised = true;
    return cu::kSuccess;
  });
}

FAKE Result cuDriverGetVersion(int* version) {
  return Enter("cuDriverGetVersion", kAlways, [&](State& s) {
    *version = s.machine.driver_version;
    return cu::kSuccess;
  });
}

FAKE Result cuGetErrorName(Result error, const char** name) {
  return Enter("cuGetErrorName", kAlways, [&](State&) -> Result {
    const ErrorText* found = FindError(error);
    *name = found ? found->name : nullptr;
    return found ? cu::kSuccess : cu::kInvalidValue;
  });
}

FAKE Result cuGetErrorString(Result error, const char** text) {
  return Enter("cuGetErrorString", kAlways, [&](State&) -> Result {
    const ErrorText* found = FindError(error);
    *text = found ? found->text : nullptr;
    return found ? cu::kSuccess : cu::kInvalidValue;
  });
}

FAKE Result cuDeviceGetCount(int* count) {
  return Enter("cuDeviceGetCount", kInitialised, [&](State& s) {
    *count = s.machine.devices;
    return cu::kSuccess;
  });
}

FAKE Result cuDeviceGet(cu::DeviceId* device, int ordinal) {
  return Enter("cuDeviceGet", kInitialised, [&](State& s) -> Result {
    if (ordinal < 0 || ordinal >= s.machine.devices) return cu::kInvalidDevice;
    *device = ordinal;
    return cu::kSuccess;
  });
}

FAKE Result cuDeviceGetName(char* name, int size, cu::DeviceId device) {
  return Enter("cuDeviceGetName", kInitialised, [&](State& s) -> Result {
    if (device < 0 || device >= s.machine.devices || size < 1) return cu::kInvalidDevice;
    std::snprintf(name, static_cast<size_t>(size), "Fake GPU %d", device);
    return cu::kSuccess;
  });
}

FAKE Result cuDeviceGetAttribute(int* value, int attribute, cu::DeviceId device) {
  return Enter("cuDeviceGetAttribute", kInitialised, [&](State& s) -> Result {
    if (device < 0 || device >= s.machine.devices) return cu::kInvalidDevice;
    const std::map<int, int> values = {{cu::kMultiprocessorCount, s.machine.multiprocessors},
                                       {cu::kIntegrated, s.machine.integrated},
                                       {cu::kComputeCapabilityMajor, s.machine.sm / 10},
                                       {cu::kComputeCapabilityMinor, s.machine.sm % 10},
                                       {cu::kL2CacheBytes, 4 << 20},
                                       {cu::kClockRateKhz, 918000},
                                       {cu::kMemoryClockRateKhz, 2133000},
                                       {cu::kMaxSharedPerMultiprocessor, 164 << 10},
                                       {cu::kMaxSharedPerBlockOptin, s.machine.shared_per_block}};
    const auto found = values.find(attribute);
    if (found == values.end()) return Violation("attribute"), cu::kInvalidValue;
    *value = found->second;
    return cu::kSuccess;
  });
}

FAKE Result cuDevicePrimaryCtxRetain(cu::Context* context, cu::DeviceId device) {
  return Enter("cuDevicePrimaryCtxRetain", kInitialised, [&](State& s) -> Result {
    if (device < 0 || device >= s.machine.devices) return cu::kInvalidDevice;
    auto& primary = s.primary[device];
    if (primary.second == 0) primary.first = s.next_handle += 16;
    ++primary.second;
    *context = reinterpret_cast<cu::Context>(primary.first);
    return cu::kSuccess;
  });
}

FAKE Result cuDevicePrimaryCtxRelease_v2(cu::DeviceId device) {
  return Enter("cuDevicePrimaryCtxRelease_v2", kInitialised, [&](State& s) -> Result {
    auto found = s.primary.find(device);
    if (found == s.primary.end() || found->second.second == 0) {
      Violation("released more often than retained");
      return cu::kInvalidContext;
    }
    --found->second.second;
    return cu::kSuccess;
  });
}

FAKE Result cuCtxSetCurrent(cu::Context context) {
  return Enter("cuCtxSetCurrent", kInitialised, [&](State& s) -> Result {
    const Handle handle = reinterpret_cast<Handle>(context);
    for (const auto& [device, primary] : s.primary) {
      if (primary.first == handle && primary.second > 0) {
        current_context = handle;
        return cu::kSuccess;
      }
    }
    Violation("no such context");
    return cu::kInvalidContext;
  });
}
