// A host and a run for tests of an op's device code through the op's own entry: its checks, its
// grid, its launches. On the emulator; or, with MK_OP_DEVICE=cuda in the environment, on a GPU
// (gpu_mirror.h), where results and refusals are judged and what only the emulator sees is not.
//
//   OpContext context;
//   const auto kernels = FooF16Kernels::Load(context.host(), context.Module(mk_emulated_foo_f16,
//   mk_images_foo_f16)); emu::DeviceArray<half> x(&context.memory(), "x", ToHalves(values)),
//   y(&context.memory(), "y", n); x.Freeze(); const auto launch = context.LaunchFunction([&] {
//     y.Reset();
//     return FooF16(*context, *kernels, {x.device(), y.device(), n});
//   });
//   const emu::Report report = launch({});                                  // once
//   const emu::SweepResult sweep = emu::Sweep(launch, BytesOf(y));          // every schedule
//   const auto mutants = emu::MutateSyncs(launch, BytesOf(y));              // without each barrier
//
// What an op takes of scratch and weights is the emulator's memory: each piece with exact bounds,
// not initialised (weights: zero).
#ifndef MERGEKERNEL_KERNELS_TESTING_OP_CONTEXT_H_
#define MERGEKERNEL_KERNELS_TESTING_OP_CONTEXT_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/abi/mk_pack.h"
#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/device/image.h"
#include "kernels/device/types.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/sweep.h"
#include "kernels/testing/gpu_mirror.h"
#include "kernels/testing/test_context.h"

namespace mk::testing {

// One launch as the host was asked for it, and what came of it.
struct OpLaunch {
  std::string kernel;
  Dim3 grid, block;
  uint32_t shared_bytes = 0;
  LaunchCost cost;
  emu::Report report;
};

// One thread. Outlives what was made from it.
class OpContext {
 public:
  OpContext();
  OpContext(const OpContext&) = delete;
  OpContext& operator=(const OpContext&) = delete;

  Context& operator*() { return *context_; }
  Context* operator->() { return context_.get(); }
  const Host& host() const { return *services_; }
  emu::DeviceMemory& memory() { return emulator_.memory(); }

  // As an op's Load takes it: the emulated module, and the images for GPUs where a test has them.
  const DeviceModule& Module(const emu::Module& module, const DeviceModule& images);
  const DeviceModule& Module(const emu::Module& module);

  // Launches run on a GPU: reports have no findings but errors, no counts and no sync sites, and
  // options mean nothing.
  bool on_gpu() const { return gpu_ != nullptr; }
  // From now on. REQUIRES nothing was loaded yet.
  void UseGpu(std::unique_ptr<GpuMirror> gpu);

  // How launches run from now on.
  void set_options(const emu::Options& options) { options_ = options; }
  // Since the last ClearLaunches, in order. The one with a finding is the last: it fails, and so
  // does the op.
  const std::vector<OpLaunch>& launches() const { return launches_; }
  void ClearLaunches() { launches_.clear(); }
  // All of them in one: findings one behind the other, counts added up, each sync site once.
  emu::Report MergedReport() const;

  // `op` as emu::Sweep and emu::MutateSyncs want it: runs it with the options and returns what its
  // launches, one or several, reported together. An op that fails without a finding of the
  // emulator's has its message reported as a bad launch.
  emu::LaunchFunction LaunchFunction(std::function<Status()> op);

  uint64_t scratch_used_bytes() const;
  uint64_t scratch_peak_bytes() const { return scratch_peak_bytes_; }
  // What was last said to the host, of a launch or by the op.
  const std::string& error() const { return error_; }

 private:
  struct LoadedKernel {
    const emu::Module* module;  // null on a GPU
    std::string name;
    DeviceKernel* on_gpu;  // null on the emulator
  };
  struct Piece {
    void* device;
    uint64_t bytes;
  };

  static const void* Service(void* self, const char* id);
  static void SetError(void* self, const char* message, mk_u64 size);
  static mk_status LoadImage(void* self, const char* name, const mk_kernel_image* images,
                             mk_u64 count, mk_module** module);
  static mk_status FindKernel(void* self, mk_module* module, const char* name, mk_kernel** kernel);
  static mk_status AllocateWeights(void* self, mk_u64 size_bytes, void** data);
  static mk_status LoadWeights(void* self, const char* file, mk_weight* weights, mk_u64 count);
  static mk_status Upload(void* self, void* device, const void* host, mk_u64 size_bytes);
  static mk_status Scratch(void* self, mk_u64 size_bytes, void** data);
  static mk_u64 ScratchMark(void* self);
  static void ScratchRelease(void* self, mk_u64 mark);
  static mk_status Launch(void* self, mk_kernel* kernel, const mk_launch* launch);
  static mk_status CopyToHost(void* self, void* host, const void* device, mk_u64 size_bytes);
  static mk_status CopyToDevice(void* self, void* device, const void* host, mk_u64 size_bytes);

  mk_status Fail(mk_status code, std::string message);
  emu::Report Emulate(const LoadedKernel& kernel, const mk_launch& launch);
  emu::Report LaunchOnGpu(const LoadedKernel& kernel, const mk_launch& launch);

  emu::Emulator emulator_;
  TestHost cpu_;  // threads, SGEMM, log, files
  emu::Options options_;
  std::unique_ptr<GpuMirror> gpu_;
  std::deque<std::vector<DeviceImage>> images_;
  std::deque<DeviceModule> modules_;
  std::deque<LoadedKernel> kernels_;
  std::vector<Piece> scratch_;
  uint64_t scratch_peak_bytes_ = 0;
  std::vector<OpLaunch> launches_;
  std::string error_;
  mk_kernels_service kernels_service_;
  mk_weights_service weights_service_;
  mk_host host_;
  mk_run run_;
  std::unique_ptr<Host> services_;
  std::unique_ptr<Context> context_;
};

std::vector<device::half> ToHalves(const std::vector<float>& values);
std::vector<float> ToFloats(const std::vector<device::half>& values);
// The nearest halves, as floats: what an fp16 operand made of `values` really holds.
std::vector<float> RoundedToHalf(const std::vector<float>& values);

// The bytes of an output, for Sweep. The array outlives the function.
template <typename T>
emu::OutputFunction BytesOf(const emu::DeviceArray<T>& array) {
  return [&array] {
    const std::vector<T> values = array.Host();
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  };
}

// Whether new contexts run on a GPU, as MK_OP_DEVICE says.
bool TestsRunOnGpu();

// First in a test of what only the emulator sees: traffic, races, what a barrier is for.
#define MK_ON_EMULATOR_ALONE()                                                         \
  if (::mk::testing::TestsRunOnGpu()) {                                                \
    GTEST_SKIP() << "skipped: on a GPU nobody counts accesses or takes barriers away"; \
  }                                                                                    \
  static_assert(true, "wants a semicolon")

// "SyncThreads in foo_f16.cu:31" for each mutant that nothing gave away. Prints a line per mutant,
// which tests/mutate.sh collects.
std::vector<std::string> Survivors(const std::vector<emu::Mutant>& mutants);

}  // namespace mk::testing

#endif  // MERGEKERNEL_KERNELS_TESTING_OP_CONTEXT_H_
