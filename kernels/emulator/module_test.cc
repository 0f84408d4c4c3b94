// An emulated module in a shared object of its own, as a pack has it: loaded, run, by two threads
// at once, unloaded.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "kernels/emulator/emulator.h"
#include "kernels/emulator/samples/samples_params.h"

namespace mk {
namespace emu {
namespace {

constexpr char kLibrary[] = "kernels/emulator/sample_reduce.so";
constexpr int kCount = 3000;

float Sum(const Module& module) {
  Emulator emulator;
  DeviceArray<float> x(&emulator.memory(), "x", std::vector<float>(kCount, 1.0f));
  DeviceArray<float> partials(&emulator.memory(), "partials", 4), sum(&emulator.memory(), "sum", 1);
  DeviceArray<mk_u32> finished(&emulator.memory(), "finished", std::vector<mk_u32>{0});
  const samples::ReduceParams params = {x.device(), partials.device(), finished.device(),
                                        sum.device(), kCount};
  const Report report = emulator.Run(module, "mk_sample_reduce", {{4}, {256}}, params);
  EXPECT_TRUE(report.ok()) << report.Text();
  return sum.Host()[0];
}

TEST(Module, LivesInASharedObject) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto* module = static_cast<const Module*>(dlsym(library, "mk_emulated_sample_reduce"));
  ASSERT_NE(module, nullptr) << dlerror();
  EXPECT_EQ(Sum(*module), kCount);
  EXPECT_EQ(module->running->thread, nullptr);
  ASSERT_EQ(dlclose(library), 0);
  EXPECT_EQ(dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD), nullptr);  // really gone
}

TEST(Module, TakesTurnsBetweenThreads) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto* module = static_cast<const Module*>(dlsym(library, "mk_emulated_sample_reduce"));
  ASSERT_NE(module, nullptr) << dlerror();
  std::vector<std::thread> threads;
  float sums[3] = {};
  for (float& sum : sums) threads.emplace_back([module, &sum] { sum = Sum(*module); });
  for (std::thread& t : threads) t.join();
  for (const float sum : sums) EXPECT_EQ(sum, kCount);
  dlclose(library);
}

}  // namespace
}  // namespace emu
}  // namespace mk
