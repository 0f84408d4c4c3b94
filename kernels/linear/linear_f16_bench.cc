// How fast the emulator runs LinearF16's device code: bazel run -c opt
// //kernels/linear:linear_f16_bench. What a GPU makes of it is measured elsewhere; this is what the
// tests cost.
#include <benchmark/benchmark.h>

#include "kernels/linear/testing/linear_f16_case.h"

namespace mk {
namespace {

void Run(benchmark::State& state, const LinearF16Shape& shape, TileIndexF16 tile, bool watched) {
  testing::LinearF16Options options;
  options.activation = Activation::kGelu;
  testing::LinearF16Case c(shape, options);
  const emu::LaunchFunction launch = c.Launch(tile);
  emu::Options run;
  run.races = run.uninitialised = run.count = watched;
  for (auto _ : state) {
    const emu::Report report = launch(run);
    if (!report.ok()) state.SkipWithError(report.Text().c_str());
  }
  const double flops = 2.0 * static_cast<double>(shape.m * shape.n * shape.k);
  state.counters["FLOP/s"] = benchmark::Counter(flops * static_cast<double>(state.iterations()),
                                                benchmark::Counter::kIsRate);
}

constexpr LinearF16Shape kSquare = {"square", 256, 256, 256};
constexpr LinearF16Shape kFc1 = {"vmamba_t_s3_fc1", 196, 1536, 384};

BENCHMARK_CAPTURE(Run, square_128x128_bounds_only, kSquare, k128x128, false);
BENCHMARK_CAPTURE(Run, square_128x128_all_detectors, kSquare, k128x128, true);
BENCHMARK_CAPTURE(Run, square_64x64_bounds_only, kSquare, k64x64, false);
BENCHMARK_CAPTURE(Run, square_64x64_all_detectors, kSquare, k64x64, true);
BENCHMARK_CAPTURE(Run, vmamba_t_s3_fc1_bounds_only, kFc1, kTileCountF16, false);

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
