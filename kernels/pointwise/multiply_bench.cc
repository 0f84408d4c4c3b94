// Multiply on the shapes of real models: time and bytes per second. The second argument is the
// thread count.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/pointwise/multiply.h"
#include "kernels/pointwise/multiply_shapes.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

void RunMultiply(benchmark::State& state) {
  const MultiplyShape& s = kMultiplyModelShapes[state.range(0)];
  testing::TestContext context(static_cast<int>(state.range(1)));
  const auto a = testing::Generate("a", 1, s.count, -1, 1);
  std::vector<float> y(a.size());
  const MultiplyParams params = {a.data(), a.data(), y.data(), s.count};
  for (auto _ : state) {
    if (!Multiply(*context, params).ok()) state.SkipWithError("failed");
  }
  state.SetLabel(s.name);
  state.SetBytesProcessed(state.iterations() * MultiplyCost(params).bytes);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t i = 0; i < static_cast<int64_t>(std::size(kMultiplyModelShapes)); ++i) {
    for (const int64_t threads : {1, 2}) bench->Args({i, threads});
  }
}
BENCHMARK(RunMultiply)->Apply(Shapes)->UseRealTime();

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
