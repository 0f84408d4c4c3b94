// The fake driver's streams, events, launches and graphs.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/device/testing/fake_cuda_state.h"

namespace mk {
namespace fake {

Result RunUntil(State& s, StreamObject& stream, const std::function<bool()>& reached) {
  while (!stream.pending.empty() && !reached()) {
    Op op = std::move(stream.pending.front());
    stream.pending.pop_front();
    ++s.clock;
    op.run();
    if (s.sticky != cu::kSuccess) {
      stream.pending.clear();
      return s.sticky;
    }
  }
  return cu::kSuccess;
}

Result RunAll(State& s, StreamObject& stream) {
  return RunUntil(s, stream, [] { return false; });
}

}  // namespace fake
}  // namespace mk

using namespace mk;        // NOLINT
using namespace mk::fake;  // NOLINT
using mk::cu::Result;

namespace {

void* KernelMemory(const void* device, size_t size) {
  State& s = TheState();
  char* memory = Memory(s, reinterpret_cast<uint64_t>(device), size);
  if (memory == nullptr) s.sticky = cu::kIllegalAddress;
  return memory;
}

// The `extra` list of a launch: exactly a buffer and its size.
bool ReadExtra(void** extra, const void** params, size_t* size) {
  if (extra == nullptr || extra[0] != cu::LaunchParamBuffer() ||
      extra[2] != cu::LaunchParamBufferSize() || extra[4] != cu::kLaunchParamEnd) {
    return false;
  }
  *params = extra[1];
  *size = *static_cast<size_t*>(extra[3]);
  return true;
}

Result CheckLaunch(State& s, const FunctionObject& function, const KernelEntry& kernel,
                   const FakeLaunch& launch) {
  for (int i = 0; i < 3; ++i) {
    if (launch.grid[i] == 0 || launch.block[i] == 0) return Violation("dims"), cu::kInvalidValue;
  }
  if (launch.grid[1] > 65535 || launch.grid[2] > 65535) return Violation("grid"), cu::kInvalidValue;
  if (uint64_t{launch.block[0]} * launch.block[1] * launch.block[2] > kernel.most_threads) {
    Violation("more threads than the function allows");
    return cu::kLaunchOutOfResources;
  }
  constexpr uint32_t kWithoutOptIn = 48 << 10;
  const uint32_t allowed = function.dynamic_shared != 0
                               ? static_cast<uint32_t>(function.dynamic_shared)
                               : kWithoutOptIn - kernel.static_shared;
  if (launch.shared_bytes > allowed) return Violation("shared memory"), cu::kInvalidValue;
  static_cast<void>(s);
  return cu::kSuccess;
}

}  // namespace

FAKE Result cuStreamCreate(cu::Stream* stream, unsigned flags) {
  return Enter("cuStreamCreate", kContext, [&](State& s) -> Result {
    if (flags != cu::kStreamNonBlocking) Violation("a stream that waits for the default stream");
    const Handle handle = s.next_handle += 16;
    s.streams[handle].context = Current();
    *stream = reinterpret_cast<cu::Stream>(handle);
    return cu::kSuccess;
  });
}

FAKE Result cuStreamSynchronize(cu::Stream stream) {
  return Enter("cuStreamSynchronize", kContext, [&](State& s) -> Result {
    StreamObject* found = FindHere(s.streams, stream, "stream");
    if (found == nullptr) return cu::kInvalidHandle;
    if (found->capturing) {
      found->capture_broken = true;
      return cu::kCaptureUnsupported;
    }
    return RunAll(s, *found);
  });
}

FAKE Result cuStreamDestroy_v2(cu::Stream stream) {
  return Enter("cuStreamDestroy_v2", kContext, [&](State& s) -> Result {
    StreamObject* found = FindHere(s.streams, stream, "stream");
    if (found == nullptr) return cu::kInvalidHandle;
    if (!found->pending.empty()) Violation("with work under way");
    if (found->capturing) Violation("while it captures");
    s.streams.erase(reinterpret_cast<Handle>(stream));
    return cu::kSuccess;
  });
}

FAKE Result cuStreamBeginCapture_v2(cu::Stream stream, int mode) {
  return Enter("cuStreamBeginCapture_v2", kContext, [&](State& s) -> Result {
    StreamObject* found = FindHere(s.streams, stream, "stream");
    if (found == nullptr) return cu::kInvalidHandle;
    if (mode != cu::kCaptureThreadLocal) Violation("a mode that stops other threads");
    if (found->capturing) return Violation("twice"), cu::kCaptureUnmatched;
    found->capturing = true;
    found->capture_broken = false;
    found->capturing_thread = std::this_thread::get_id();
    found->captured.clear();
    return cu::kSuccess;
  });
}

FAKE Result cuStreamEndCapture(cu::Stream stream, cu::Graph* graph) {
  return Enter("cuStreamEndCapture", kContext, [&](State& s) -> Result {
    *graph = nullptr;
    StreamObject* found = FindHere(s.streams, stream, "stream");
    if (found == nullptr) return cu::kInvalidHandle;
    if (!found->capturing) return Violation("no capture"), cu::kCaptureUnmatched;
    if (found->capturing_thread != std::this_thread::get_id()) return cu::kCaptureWrongThread;
    found->capturing = false;
    std::vector<Op> ops = std::exchange(found->captured, {});
    if (found->capture_broken) return cu::kCaptureInvalidated;
    const Handle handle = s.next_handle += 16;
    s.graphs[handle] = {Current(), std::move(ops)};
    *graph = reinterpret_cast<cu::Graph>(handle);
    return cu::kSuccess;
  });
}

FAKE Result cuEventCreate(cu::Event* event, unsigned flags) {
  return Enter("cuEventCreate", kContext, [&](State& s) -> Result {
    const Handle handle = s.next_handle += 16;
    s.events[handle].context = Current();
    s.events[handle].timing = (flags & cu::kEventDisableTiming) == 0;
    *event = reinterpret_cast<cu::Event>(handle);
    return cu::kSuccess;
  });
}

FAKE Result cuEventRecord(cu::Event event, cu::Stream stream) {
  return Enter("cuEventRecord", kContext, [&](State& s) -> Result {
    EventObject* found = FindHere(s.events, event, "event");
    StreamObject* on = FindHere(s.streams, stream, "stream");
    if (found == nullptr || on == nullptr) return cu::kInvalidHandle;
    if (on->capturing) {
      on->capture_broken = true;
      return cu::kCaptureUnsupported;
    }
    const Handle handle = reinterpret_cast<Handle>(event);
    found->recorded_on = reinterpret_cast<Handle>(stream);
    ++found->records;
    Op op;
    op.run = [&s, handle] {
      const auto at = s.events.find(handle);
      if (at == s.events.end()) return;  // destroyed meanwhile: allowed
      ++at->second.completed;
      at->second.time = s.clock;
    };
    on->pending.push_back(std::move(op));
    return cu::kSuccess;
  });
}

FAKE Result cuEventSynchronize(cu::Event event) {
  return Enter("cuEventSynchronize", kContext, [&](State& s) -> Result {
    EventObject* found = FindHere(s.events, event, "event");
    if (found == nullptr) return cu::kInvalidHandle;
    if (found->completed == found->records) return cu::kSuccess;
    StreamObject* on = Find(s.streams, found->recorded_on, "stream");
    if (on == nullptr) return cu::kInvalidHandle;
    return RunUntil(s, *on, [found] { return found->completed == found->records; });
  });
}

FAKE Result cuEventElapsedTime(float* milliseconds, cu::Event begin, cu::Event end) {
  return Enter("cuEventElapsedTime", kContext, [&](State& s) -> Result {
    EventObject* from = FindHere(s.events, begin, "event");
    EventObject* to = FindHere(s.events, end, "event");
    if (from == nullptr || to == nullptr) return cu::kInvalidHandle;
    if (!from->timing || !to->timing) return Violation("no timing"), cu::kInvalidHandle;
    if (from->records == 0 || to->records == 0)
      return Violation("never recorded"), cu::kInvalidHandle;
    if (from->completed != from->records || to->completed != to->records) return cu::kNotReady;
    *milliseconds = static_cast<float>(to->time) - static_cast<float>(from->time);
    return cu::kSuccess;
  });
}

FAKE Result cuEventDestroy_v2(cu::Event event) {
  return Enter("cuEventDestroy_v2", kContext, [&](State& s) -> Result {
    if (FindHere(s.events, event, "event") == nullptr) return cu::kInvalidHandle;
    s.events.erase(reinterpret_cast<Handle>(event));
    return cu::kSuccess;
  });
}

FAKE Result cuLaunchKernel(cu::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, cu::Stream stream, void** params, void** extra) {
  return Enter("cuLaunchKernel", kContext, [&](State& s) -> Result {
    StreamObject* on = FindHere(s.streams, stream, "stream");
    FunctionObject* found = Find(s.functions, function, "function");
    if (on == nullptr || found == nullptr) return cu::kInvalidHandle;
    const ModuleObject* module = Find(s.modules, found->module, "module");
    if (module == nullptr || module->context != Current()) {
      Violation("a function of another context");
      return cu::kInvalidHandle;
    }
    const KernelEntry& kernel = s.kernels.at(found->name);
    const void* bytes = nullptr;
    size_t size = 0;
    if (params != nullptr || !ReadExtra(extra, &bytes, &size)) {
      return Violation("parameters are not one buffer with its size"), cu::kInvalidValue;
    }
    if (size != kernel.params_bytes) {
      Violation(found->name + ": " + std::to_string(size) + " bytes of parameters, not " +
                std::to_string(kernel.params_bytes));
      return cu::kInvalidValue;
    }
    const FakeLaunch launch = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, &KernelMemory};
    const Result checked = CheckLaunch(s, *found, kernel, launch);
    if (checked != cu::kSuccess) return checked;
    Op op;
    op.function = reinterpret_cast<Handle>(function);
    const std::string copy(static_cast<const char*>(bytes), size);
    op.run = [&s, launch, copy, run = kernel.run] {
      ++s.launches;
      run(launch, copy.data());
    };
    if (on->capturing) {
      on->captured.push_back(std::move(op));
    } else {
      on->pending.push_back(std::move(op));
    }
    return cu::kSuccess;
  });
}

FAKE Result cuGraphInstantiateWithFlags(cu::GraphExec* exec, cu::Graph graph,
                                        unsigned long long flags) {
  return Enter("cuGraphInstantiateWithFlags", kContext | kNoCapture, [&](State& s) -> Result {
    GraphObject* found = FindHere(s.graphs, graph, "graph");
    if (found == nullptr) return cu::kInvalidHandle;
    if (flags != 0) return Violation("flags"), cu::kInvalidValue;
    const Handle handle = s.next_handle += 16;
    s.execs[handle] = *found;
    *exec = reinterpret_cast<cu::GraphExec>(handle);
    return cu::kSuccess;
  });
}

FAKE Result cuGraphLaunch(cu::GraphExec exec, cu::Stream stream) {
  return Enter("cuGraphLaunch", kContext, [&](State& s) -> Result {
    GraphObject* found = FindHere(s.execs, exec, "graph");
    StreamObject* on = FindHere(s.streams, stream, "stream");
    if (found == nullptr || on == nullptr) return cu::kInvalidHandle;
    if (on->capturing) return Violation("into a capture"), cu::kCaptureUnsupported;
    for (const Op& op : found->ops) {
      if (op.function != 0 && s.functions.count(op.function) == 0) {
        return Violation("a graph of an unloaded module"), cu::kInvalidHandle;
      }
    }
    Op begin;
    begin.run = [&s] { ++s.graph_launches; };
    on->pending.push_back(std::move(begin));
    for (const Op& op : found->ops) on->pending.push_back(op);
    return cu::kSuccess;
  });
}

FAKE Result cuGraphExecDestroy(cu::GraphExec exec) {
  return Enter("cuGraphExecDestroy", kContext, [&](State& s) -> Result {
    if (FindHere(s.execs, exec, "graph") == nullptr) return cu::kInvalidHandle;
    s.execs.erase(reinterpret_cast<Handle>(exec));
    return cu::kSuccess;
  });
}

FAKE Result cuGraphDestroy(cu::Graph graph) {
  return Enter("cuGraphDestroy", kContext, [&](State& s) -> Result {
    if (FindHere(s.graphs, graph, "graph") == nullptr) return cu::kInvalidHandle;
    s.graphs.erase(reinterpret_cast<Handle>(graph));
    return cu::kSuccess;
  });
}
