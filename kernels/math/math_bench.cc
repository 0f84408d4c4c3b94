// Elements per second of the vector math, in L1.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/math/activation.h"
#include "kernels/math/exp.h"

namespace mk {
namespace {

template <float (*kFunction)(float)>
void Map(benchmark::State& state) {
  std::vector<float> x(static_cast<size_t>(state.range(0)));
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = -8.0f + 16.0f * static_cast<float>(i) / x.size();
  const float* in = x.data();
  float* out = y.data();
  const auto count = static_cast<int64_t>(x.size());
  for (auto _ : state) {
    for (int64_t i = 0; i < count; ++i) out[i] = kFunction(in[i]);
    benchmark::DoNotOptimize(out);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * count);
}

BENCHMARK_TEMPLATE(Map, Exp)->Arg(2048);
BENCHMARK_TEMPLATE(Map, Softplus)->Arg(2048);
BENCHMARK_TEMPLATE(Map, Gelu)->Arg(2048);
BENCHMARK_TEMPLATE(Map, Silu)->Arg(2048);

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
