// Conv3x3 on the shapes of real models: time and FLOP/s. The second argument is the thread count.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/conv/conv3x3.h"
#include "kernels/conv/conv3x3_shapes.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

void RunConv3x3(benchmark::State& state) {
  const Conv3x3Shape& s = kConv3x3ModelShapes[state.range(0)];
  testing::TestContext context(static_cast<int>(state.range(1)));
  const auto x = testing::Generate("x", 1, s.height * s.width * s.in_channels, -1, 1);
  const auto weight = testing::Generate("weight", 1, 9 * s.in_channels * s.out_channels, -1, 1);
  const auto bias = testing::Generate("bias", 1, s.out_channels, -1, 1);
  std::vector<float> y(static_cast<size_t>(Conv3x3OutputSide(s.height, s.stride) *
                                           Conv3x3OutputSide(s.width, s.stride) * s.out_channels));
  const Conv3x3Params params = {x.data(), weight.data(), bias.data(),    y.data(), s.height,
                                s.width,  s.in_channels, s.out_channels, s.stride};
  for (auto _ : state) {
    if (!Conv3x3(*context, params).ok()) state.SkipWithError("Conv3x3 failed");
  }
  const OpCost cost = Conv3x3Cost(params);
  state.SetLabel(s.name);
  state.SetBytesProcessed(state.iterations() * cost.bytes);
  state.counters["FLOP/s"] = benchmark::Counter(static_cast<double>(cost.flops),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t i = 0; i < static_cast<int64_t>(std::size(kConv3x3ModelShapes)); ++i) {
    for (const int64_t threads : {1, 2}) bench->Args({i, threads});
  }
}
BENCHMARK(RunConv3x3)->Apply(Shapes)->UseRealTime();

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
