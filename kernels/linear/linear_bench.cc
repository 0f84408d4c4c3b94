// Linear on the shapes of real models: time and FLOP/s. The second argument is the thread count.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/linear/linear.h"
#include "kernels/linear/linear_shapes.h"
#include "kernels/testing/generator.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

void RunLinear(benchmark::State& state) {
  const LinearShape& shape = kLinearModelShapes[state.range(0)];
  testing::TestContext context(static_cast<int>(state.range(1)));
  const auto x = testing::Generate("x", 1, shape.m * shape.k, -1, 1);
  const auto weight = testing::Generate("weight", 1, shape.n * shape.k, -1, 1);
  const auto bias = testing::Generate("bias", 1, shape.n, -1, 1);
  std::vector<float> y(static_cast<size_t>(shape.m * shape.n));
  const LinearParams params = {x.data(), weight.data(), bias.data(), nullptr,          y.data(),
                               shape.m,  shape.n,       shape.k,     Activation::kGelu};
  for (auto _ : state) {
    if (!Linear(*context, params).ok()) state.SkipWithError("Linear failed");
  }
  const OpCost cost = LinearCost(params);
  state.SetLabel(shape.name);
  state.SetBytesProcessed(state.iterations() * cost.bytes);
  state.counters["FLOP/s"] = benchmark::Counter(static_cast<double>(cost.flops),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t i = 0; i < static_cast<int64_t>(std::size(kLinearModelShapes)); ++i) {
    for (const int64_t threads : {1, 2}) bench->Args({i, threads});
  }
}
BENCHMARK(RunLinear)->Apply(Shapes)->UseRealTime();

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
