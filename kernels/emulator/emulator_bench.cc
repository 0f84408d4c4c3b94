// How fast kernels run here: bazel run -c opt //kernels/emulator:emulator_bench
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/device/convert.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/sample_gemm_emulated.h"
#include "kernels/emulator/sample_layer_norm_emulated.h"
#include "kernels/emulator/samples/samples_params.h"

namespace mk {
namespace emu {
namespace {

Options Watching(bool all) {
  Options options;
  options.races = options.uninitialised = options.count = all;
  return options;
}

void Gemm(benchmark::State& state, bool all) {
  const int size = static_cast<int>(state.range(0));
  const std::vector<device::half> ones(static_cast<size_t>(size) * size,
                                       {device::FloatToHalfBits(1.0f)});
  Emulator emulator;
  DeviceArray<device::half> a(&emulator.memory(), "a", ones), b(&emulator.memory(), "b", ones),
      c(&emulator.memory(), "c", ones.size());
  const samples::GemmParams params = {a.device(), b.device(), c.device(), size, size, size};
  const uint32_t tiles = static_cast<uint32_t>(size + 63) / 64;
  uint64_t switches = 0;
  for (auto _ : state) {
    const Report report = emulator.Run(mk_emulated_sample_gemm, "mk_sample_gemm",
                                       {{tiles, tiles}, {128}, 16 * 1024}, params, Watching(all));
    if (!report.ok()) state.SkipWithError(report.Text().c_str());
    switches += report.counts.switches;
  }
  state.counters["FLOP/s"] =
      benchmark::Counter(2.0 * size * size * size * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
  state.counters["switches/s"] =
      benchmark::Counter(static_cast<double>(switches), benchmark::Counter::kIsRate);
}

void LayerNorm(benchmark::State& state, bool all) {
  const int rows = static_cast<int>(state.range(0));
  const int channels = static_cast<int>(state.range(1));
  const std::vector<float> ones(static_cast<size_t>(rows) * channels, 1.0f);
  Emulator emulator;
  DeviceArray<float> x(&emulator.memory(), "x", ones), y(&emulator.memory(), "y", ones.size()),
      weight(&emulator.memory(), "weight", std::vector<float>(channels, 1.0f)),
      bias(&emulator.memory(), "bias", std::vector<float>(channels, 1.0f));
  const samples::LayerNormParams params = {x.device(), weight.device(), bias.device(), y.device(),
                                           rows,       channels,        1e-5f};
  for (auto _ : state) {
    const Report report =
        emulator.Run(mk_emulated_sample_layer_norm, "mk_sample_layer_norm",
                     {{static_cast<uint32_t>(rows + 7) / 8}, {256}}, params, Watching(all));
    if (!report.ok()) state.SkipWithError(report.Text().c_str());
  }
  state.counters["elements/s"] =
      benchmark::Counter(static_cast<double>(ones.size()) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(Gemm, bounds_only, false)->Arg(256);
BENCHMARK_CAPTURE(Gemm, all_detectors, true)->Arg(256);
BENCHMARK_CAPTURE(LayerNorm, bounds_only, false)->Args({256, 256});
BENCHMARK_CAPTURE(LayerNorm, all_detectors, true)->Args({256, 256});

}  // namespace
}  // namespace emu
}  // namespace mk

BENCHMARK_MAIN();
