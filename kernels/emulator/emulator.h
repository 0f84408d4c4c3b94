// Runs CUDA kernels on the CPU, for tests: a fiber per thread, blocks one after another.
//
//   Emulator emulator;
//   DeviceArray<float> x(&emulator.memory(), "x", host_values), y(&emulator.memory(), "y", n);
//   const AddParams params = {x.device(), y.device(), n};
//   const Report report = emulator.Run(mk_emulated_add, "mk_add", {{blocks}, {256}}, params);
//   EXPECT_TRUE(report.ok()) << report.Text();
//   EXPECT_EQ(y.Host(), expected);
//
// What it finds and counts is in options.h, finding.h and traffic.h; sweep.h runs a launch under
// everything there is.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_EMULATOR_H_
#define MERGEKERNEL_KERNELS_EMULATOR_EMULATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/emulated.h"
#include "kernels/emulator/finding.h"
#include "kernels/emulator/memory.h"
#include "kernels/emulator/options.h"
#include "kernels/emulator/traffic.h"

namespace mk {
namespace emu {

class Launch;

struct LaunchShape {
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
};

// A synchronisation that a launch came to, for checks that try without it.
struct SyncSite {
  Site site;
  const char* name;  // "SyncThreads", "SyncWarp", "CopyAsyncWait", ...
};

// A switch that Options::replay asked for, as it happened.
struct TraceStep {
  uint64_t block;
  uint32_t from, to;  // threads of the block
  const char* why;    // "before its access at", "to wait at", "at its end", "before it begins"
  Site at;            // where `from` stands
  Site to_at;         // where `to` goes on; none: it begins
};

struct Report {
  std::vector<Finding> findings;
  Counts counts;
  uint32_t static_shared_bytes = 0;  // the most of any block
  std::vector<SyncSite> sync_sites;  // each once, in order of first use
  std::vector<Switch> switches;  // Options::record: those that differ from the forward schedule's
  std::vector<TraceStep> trace;  // Options::replay

  bool ok() const { return findings.empty(); }
  bool Has(FindingKind kind) const;
  std::string Text() const;  // all findings; "no findings" where there are none
};

// Not thread-safe; several may be used on OS threads of their own, where launches of one module
// wait for each other. Owns its memory and stacks.
class Emulator {
 public:
  Emulator();
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  DeviceMemory& memory() { return memory_; }

  // Runs the launch to its end, or to where it cannot go on; blocks. Whatever is wrong is in the
  // report, the launch's own mistakes (no such kernel, another size of parameters, too many
  // threads) as kBadLaunch with nothing run.
  Report Run(const Module& module, const std::string& kernel, const LaunchShape& shape,
             const void* params, uint32_t params_bytes, const Options& options = {});

  template <class Params>
  Report Run(const Module& module, const std::string& kernel, const LaunchShape& shape,
             const Params& params, const Options& options = {}) {
    return Run(module, kernel, shape, &params, sizeof(Params), options);
  }

 private:
  DeviceMemory memory_;
  std::unique_ptr<Launch> launch_;
};

// An array of the emulator's device memory with a copy on the host's side. The emulator must
// outlive it.
template <class T>
class DeviceArray {
 public:
  // `count` elements that nobody has written.
  DeviceArray(DeviceMemory* memory, const std::string& name, uint64_t count)
      : memory_(memory),
        count_(count),
        device_(static_cast<T*>(memory->Allocate(count * sizeof(T), name))) {}
  DeviceArray(DeviceMemory* memory, const std::string& name, const std::vector<T>& values)
      : DeviceArray(memory, name, values.size()) {
    Set(values);
  }
  ~DeviceArray() { memory_->Free(device_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* device() const { return device_; }
  void Reset() { memory_->Reset(device_); }    // as if nobody had written it
  void Freeze() { memory_->Freeze(device_); }  // an input: kernels may not store into it
  void Set(const std::vector<T>& values) {
    memory_->CopyIn(device_, values.data(), values.size() * sizeof(T));
  }
  std::vector<T> Host() const {
    std::vector<T> values(count_);
    memory_->CopyOut(values.data(), device_, count_ * sizeof(T));
    return values;
  }

 private:
  DeviceMemory* memory_;
  uint64_t count_;
  T* device_;
};

}  // namespace emu
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_EMULATOR_H_
