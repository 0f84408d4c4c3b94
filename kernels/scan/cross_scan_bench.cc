// CrossScan on the shapes of real models: time, and scanned elements (token x channel x direction
// x state) per second. The second argument is the thread count.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/scan/cross_scan.h"
#include "kernels/scan/cross_scan_shapes.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

void RunCrossScan(benchmark::State& bench_state) {
  const CrossScanShape& s = kCrossScanModelShapes[bench_state.range(0)];
  testing::TestContext context(static_cast<int>(bench_state.range(1)));
  const int64_t tokens = s.height * s.width;
  using testing::Generate;
  const auto x = Generate("x", 1, tokens * s.channels, -1, 1);
  const auto projected = Generate("projected", 1, tokens * 4 * (s.rank + 2 * s.state), -1, 1);
  const auto dt_weight = Generate("dt_weight", 1, 4 * s.rank * s.channels, -1, 1);
  const auto dt_bias = Generate("dt_bias", 1, 4 * s.channels, -4, 1);
  const auto a = Generate("a", 1, 4 * s.state * s.channels, -2.7f, -0.3f);
  const auto d = Generate("d", 1, s.channels, 2, 6);
  std::vector<float> y(x.size());
  const CrossScanParams params = {x.data(), projected.data(), dt_weight.data(), dt_bias.data(),
                                  a.data(), d.data(),         y.data(),         s.height,
                                  s.width,  s.channels,       s.rank,           s.state};
  for (auto _ : bench_state) {
    if (!CrossScan(*context, params).ok()) bench_state.SkipWithError("CrossScan failed");
  }
  bench_state.SetLabel(s.name);
  bench_state.SetItemsProcessed(bench_state.iterations() * 4 * tokens * s.channels * s.state);
  bench_state.SetBytesProcessed(bench_state.iterations() * CrossScanCost(params).bytes);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t i = 0; i < static_cast<int64_t>(std::size(kCrossScanModelShapes)); ++i) {
    for (const int64_t threads : {1, 2}) bench->Args({i, threads});
  }
}
BENCHMARK(RunCrossScan)->Apply(Shapes)->UseRealTime();

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
