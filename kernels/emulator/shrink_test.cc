// A race that no detector is told about, only the wrong result: found, shrunk, and told with source
// lines.
#include "kernels/emulator/shrink.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/device/convert.h"
#include "kernels/emulator/broken_emulated.h"
#include "kernels/emulator/sample_gemm_emulated.h"
#include "kernels/emulator/samples/samples_params.h"

namespace mk {
namespace emu {
namespace {

Options Blind() {
  Options options;
  options.races = options.uninitialised = options.count = false;
  return options;
}

// The trailing barrier of the loop is missing: with threads in order the result is right all the
// same.
TEST(Shrink, FindsTheFewSwitchesThatMatter) {
  Emulator emulator;
  std::vector<float> values(256);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  DeviceArray<float> x(&emulator.memory(), "x", values);
  DeviceArray<float> y(&emulator.memory(), "y", 256);
  const auto launch = [&](const Options& options) {
    y.Set(std::vector<float>(256, -1.0f));
    return emulator.Run(mk_emulated_broken, "mk_broken_missing_trailing_barrier", {{1}, {64}},
                        samples::BrokenParams{x.device(), y.device(), 256}, options);
  };
  ASSERT_TRUE(launch(Blind()).ok());
  const std::vector<float> right = y.Host();
  const Shrunk shrunk = FindAndShrink(
      launch, [&](const Report&) { return y.Host() != right; }, Blind());
  ASSERT_TRUE(shrunk.found) << shrunk.Text();
  ASSERT_TRUE(shrunk.replayed) << shrunk.Text();
  EXPECT_GE(shrunk.switches.size(), 1u);
  EXPECT_LE(shrunk.switches.size(), 2u) << shrunk.Text();
  EXPECT_EQ(shrunk.report.trace.size(), shrunk.switches.size());
  EXPECT_NE(shrunk.Text().find("broken.cu:"), std::string::npos) << shrunk.Text();
  std::printf("%s", shrunk.Text().c_str());

  // It is a schedule that can be had again.
  Options again = Blind();
  again.replay = &shrunk.switches;
  launch(again);
  EXPECT_NE(y.Host(), right);
  const std::vector<Switch> none;
  again.replay = &none;
  launch(again);
  EXPECT_EQ(y.Host(), right);
}

// A real kernel without its trailing barrier: the brief's own example of a race that most orders
// hide.
TEST(Shrink, FindsTheGemmWithoutItsTrailingBarrier) {
  constexpr int kSize = 64;
  constexpr int kDepth = 96;
  Emulator emulator;
  std::vector<device::half> a(kSize * kDepth), b(kDepth * kSize);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = {device::FloatToHalfBits(static_cast<float>(i % 13) - 6)};
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = {device::FloatToHalfBits(static_cast<float>(i % 7) - 3)};
  DeviceArray<device::half> a_device(&emulator.memory(), "a", a),
      b_device(&emulator.memory(), "b", b),
      c_device(&emulator.memory(), "c", uint64_t{kSize} * kSize);
  const auto launch = [&](const Options& options) {
    return emulator.Run(mk_emulated_sample_gemm, "mk_sample_gemm", {{1}, {128}, 16 * 1024},
                        samples::GemmParams{a_device.device(), b_device.device(), c_device.device(),
                                            kSize, kSize, kDepth},
                        options);
  };
  const auto bits = [&] {
    std::vector<mk_u16> all;
    for (const device::half h : c_device.Host()) all.push_back(h.bits);
    return all;
  };
  const Report whole = launch(Blind());
  ASSERT_TRUE(whole.ok()) << whole.Text();
  const std::vector<mk_u16> right = bits();
  ASSERT_EQ(whole.sync_sites.size(), 3u);

  Options broken = Blind();
  broken.async = AsyncCopies::kEager;
  broken.ignored_sync = whole.sync_sites.back().site;
  const Shrunk shrunk = FindAndShrink(
      launch, [&](const Report&) { return bits() != right; }, broken, 300);
  ASSERT_TRUE(shrunk.found) << shrunk.Text();
  EXPECT_LE(shrunk.switches.size(), 2u) << shrunk.Text();
  std::printf("%s", shrunk.Text().c_str());
}

TEST(Shrink, FindsNothingWhereAllIsWell) {
  Emulator emulator;
  DeviceArray<float> x(&emulator.memory(), "x", std::vector<float>(256, 1.0f));
  DeviceArray<float> y(&emulator.memory(), "y", 256);
  const Shrunk shrunk = FindAndShrink(
      [&](const Options& options) {
        return emulator.Run(mk_emulated_broken, "mk_right_warp_sync", {{1}, {64}},
                            samples::BrokenParams{x.device(), y.device(), 256}, options);
      },
      [](const Report& report) { return !report.ok(); }, Options{}, 40);
  EXPECT_FALSE(shrunk.found);
  EXPECT_GE(shrunk.runs, 40);
}

}  // namespace
}  // namespace emu
}  // namespace mk
