// FeedForward on the shapes of real models: time and FLOP per second. The second argument is the
// thread count.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/linear/feed_forward.h"
#include "kernels/linear/feed_forward_shapes.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

void RunFeedForward(benchmark::State& state) {
  const FeedForwardShape& s = kFeedForwardModelShapes[state.range(0)];
  testing::TestContext context(static_cast<int>(state.range(1)));
  using testing::Generate;
  auto x = Generate("x", 1, s.rows * s.channels, -1, 1);
  const auto norm = Generate("norm", 1, s.channels, 0.5f, 1.5f);
  const auto weight1 = Generate("w1", 1, s.hidden * s.channels, -0.1f, 0.1f);
  const auto bias1 = Generate("b1", 1, s.hidden, -1, 1);
  const auto weight2 = Generate("w2", 1, s.channels * s.hidden, -1e-6f, 1e-6f);  // x stays put
  const FeedForwardParams params = {norm.data(),    norm.data(), weight1.data(), bias1.data(),
                                    weight2.data(), nullptr,     x.data(),       s.rows,
                                    s.channels,     s.hidden,    1e-5f,          Activation::kGelu};
  for (auto _ : state) {
    if (!FeedForward(*context, params).ok()) state.SkipWithError("FeedForward failed");
  }
  state.SetLabel(s.name);
  state.counters["FLOP/s"] = benchmark::Counter(static_cast<double>(FeedForwardCost(params).flops),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t i = 0; i < static_cast<int64_t>(std::size(kFeedForwardModelShapes)); ++i) {
    for (const int64_t threads : {1, 2}) bench->Args({i, threads});
  }
}
BENCHMARK(RunFeedForward)->Apply(Shapes)->UseRealTime();

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
