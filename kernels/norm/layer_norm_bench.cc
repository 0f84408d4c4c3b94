// LayerNorm on the shapes of real models: time and bytes per second. The second argument is the
// thread count.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/norm/layer_norm.h"
#include "kernels/norm/layer_norm_shapes.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

void RunLayerNorm(benchmark::State& state) {
  const LayerNormShape& shape = kLayerNormModelShapes[state.range(0)];
  testing::TestContext context(static_cast<int>(state.range(1)));
  const auto x = testing::Generate("x", 1, shape.rows * shape.channels, -1, 1);
  const auto weight = testing::Generate("weight", 1, shape.channels, -1, 1);
  std::vector<float> y(x.size());
  const LayerNormParams params = {x.data(),   weight.data(),  weight.data(), y.data(),
                                  shape.rows, shape.channels, 1e-5f,         Activation::kNone};
  for (auto _ : state) {
    if (!LayerNorm(*context, params).ok()) state.SkipWithError("LayerNorm failed");
  }
  state.SetLabel(shape.name);
  state.SetBytesProcessed(state.iterations() * LayerNormCost(params).bytes);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t i = 0; i < static_cast<int64_t>(std::size(kLayerNormModelShapes)); ++i) {
    for (const int64_t threads : {1, 2}) bench->Args({i, threads});
  }
}
BENCHMARK(RunLayerNorm)->Apply(Shapes)->UseRealTime();

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
