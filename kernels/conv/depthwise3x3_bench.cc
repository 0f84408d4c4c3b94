// Depthwise3x3 with SiLU on the shapes of real models: time and bytes per second. The second
// argument is the thread count.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/conv/depthwise3x3.h"
#include "kernels/conv/depthwise3x3_shapes.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

void RunDepthwise3x3(benchmark::State& state) {
  const Depthwise3x3Shape& s = kDepthwise3x3ModelShapes[state.range(0)];
  testing::TestContext context(static_cast<int>(state.range(1)));
  const auto x = testing::Generate("x", 1, s.height * s.width * s.channels, -1, 1);
  const auto weight = testing::Generate("weight", 1, 9 * s.channels, -1, 1);
  std::vector<float> y(x.size());
  const Depthwise3x3Params params = {x.data(), weight.data(), y.data(),         s.height,
                                     s.width,  s.channels,    Activation::kSilu};
  for (auto _ : state) {
    if (!Depthwise3x3(*context, params).ok()) state.SkipWithError("Depthwise3x3 failed");
  }
  state.SetLabel(s.name);
  state.SetBytesProcessed(state.iterations() * Depthwise3x3Cost(params).bytes);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t i = 0; i < static_cast<int64_t>(std::size(kDepthwise3x3ModelShapes)); ++i) {
    for (const int64_t threads : {1, 2}) bench->Args({i, threads});
  }
}
BENCHMARK(RunDepthwise3x3)->Apply(Shapes)->UseRealTime();

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
