// The fake driver in a test's own process: opened once, reset before each test, and at the end of
// each nothing may be left and no call may have been wrong.
#ifndef MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_CUDA_FIXTURE_H_
#define MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_CUDA_FIXTURE_H_

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/cuda/cuda_device.h"
#include "core/device/testing/fake_cuda.h"
#include "core/device/testing/fake_image.h"

namespace mk {

inline constexpr char kFakeLibrary[] = "core/device/testing/libcuda.so.1";

struct ScaleParams {
  float* y;        // [count], device
  const float* x;  // [count], device
  float factor;
  int count;
};
inline void ScaleKernel(const FakeLaunch& launch, const void* params) {
  const auto& p = *static_cast<const ScaleParams*>(params);
  const size_t bytes = static_cast<size_t>(p.count) * sizeof(float);
  const auto* x = static_cast<const float*>(launch.memory(p.x, bytes));
  auto* y = static_cast<float*>(launch.memory(p.y, bytes));
  if (x == nullptr || y == nullptr) return;
  const int threads = static_cast<int>(launch.grid[0] * launch.block[0]);
  for (int i = 0; i < p.count && i < threads; ++i) y[i] = x[i] * p.factor;
}

class FakeCudaTest : public ::testing::Test {
 protected:
  static const FakeCudaControl& Fake() {
    static const FakeCudaControl* const control = [] {
      void* library = dlopen(kFakeLibrary, RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) ADD_FAILURE() << dlerror();
      return reinterpret_cast<decltype(&fake_cuda_control)>(dlsym(library, "fake_cuda_control"))();
    }();
    return *control;
  }

  void SetUp() override {
    Reset({});
    Fake().register_kernel("mk_scale", sizeof(ScaleParams), 0, 1024, &ScaleKernel);
  }
  void TearDown() override {
    ExpectNothingLeft();
    EXPECT_EQ(Violations(), "");
    EXPECT_EQ(Counts().pageable_copies, 0u);
  }

  static void Reset(const FakeMachine& machine) { Fake().reset(&machine); }
  static FakeCounts Counts() {
    FakeCounts counts;
    Fake().counts(&counts);
    return counts;
  }
  static std::string Violations() {
    std::string all;
    for (uint64_t i = 0; i < Counts().violations; ++i) {
      all += std::string(Fake().violation(i)) + "\n";
    }
    return all;
  }
  // Handles and memory that the driver would still hold.
  static std::string Left() {
    const FakeCounts c = Counts();
    std::string left;
    const std::pair<const char*, uint64_t> kinds[] = {
        {"contexts", c.contexts}, {"allocations", c.allocations}, {"pinned", c.pinned},
        {"streams", c.streams},   {"events", c.events},           {"modules", c.modules},
        {"graphs", c.graphs},     {"executables", c.graph_execs}};
    for (const auto& [name, count] : kinds) {
      if (count != 0) left += std::string(name) + " " + std::to_string(count) + " ";
    }
    return left;
  }
  static void ExpectNothingLeft() { EXPECT_EQ(Left(), ""); }

  static CudaOptions Options() {
    CudaOptions options;
    options.library = kFakeLibrary;
    options.budget_bytes = 256 << 20;
    options.staging_slot_bytes = 4096;
    return options;
  }
  static std::unique_ptr<Device> NewDevice(CudaOptions options = Options()) {
    auto device = NewCudaDevice(options);
    EXPECT_TRUE(device.ok()) << device.status();
    return device.ok() ? *std::move(device) : nullptr;
  }

  static mk_kernel_image Image(mk_image_kind kind, mk_u32 sm, mk_u32 driver,
                               const std::string& bytes) {
    return {kind, sm, driver, 0, bytes.data(), bytes.size()};
  }
  static std::unique_ptr<Module> LoadScale(Device& device) {
    static const std::string cubin = FakeCubin(87, {"mk_scale"});
    auto module = device.LoadModule(Image(MK_IMAGE_CUBIN, 87, 12000, cubin));
    EXPECT_TRUE(module.ok()) << module.status();
    return module.ok() ? *std::move(module) : nullptr;
  }
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_CUDA_FIXTURE_H_
