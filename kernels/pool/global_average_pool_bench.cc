// GlobalAveragePool on the shapes of real models: time and bytes per second. The second argument is
// the thread count.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/pool/global_average_pool.h"
#include "kernels/pool/global_average_pool_shapes.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

void RunGlobalAveragePool(benchmark::State& state) {
  const GlobalAveragePoolShape& s = kGlobalAveragePoolModelShapes[state.range(0)];
  testing::TestContext context(static_cast<int>(state.range(1)));
  const auto x = testing::Generate("x", 1, s.rows * s.channels, -1, 1);
  std::vector<float> y(static_cast<size_t>(s.channels));
  const GlobalAveragePoolParams params = {x.data(), y.data(), s.rows, s.channels};
  for (auto _ : state) {
    if (!GlobalAveragePool(*context, params).ok()) state.SkipWithError("failed");
  }
  state.SetLabel(s.name);
  state.SetBytesProcessed(state.iterations() * GlobalAveragePoolCost(params).bytes);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t i = 0; i < static_cast<int64_t>(std::size(kGlobalAveragePoolModelShapes)); ++i) {
    for (const int64_t threads : {1, 2}) bench->Args({i, threads});
  }
}
BENCHMARK(RunGlobalAveragePool)->Apply(Shapes)->UseRealTime();

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
