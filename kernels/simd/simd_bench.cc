// Elements per second of the vector math, in L1, on every instruction set of this CPU.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "kernels/simd/testing/isas.h"
#include "kernels/simd/testing/map.h"

namespace mk {
namespace {

void RunMap(benchmark::State& state) {
  const Isa isa = static_cast<Isa>(state.range(0));
  const auto op = static_cast<MapOp>(state.range(1));
  const auto map = MK_SIMD_PICK(isa, Map);
  std::vector<float> x(2048);
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = -8.0f + static_cast<float>(i) / 128.0f;
  for (auto _ : state) {
    map(op, x.data(), y.data(), static_cast<mk_i64>(x.size()));
    benchmark::ClobberMemory();
  }
  constexpr const char* kNames[] = {"exp", "softplus", "gelu", "silu"};
  state.SetLabel(std::string(IsaName(isa)) + " " + kNames[state.range(1)]);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(x.size()));
}

void EveryIsa(benchmark::internal::Benchmark* bench) {
  for (const Isa isa : testing::CompiledIsas()) {
    if (!HasIsa(isa)) continue;
    for (int op = 0; op < 4; ++op) bench->Args({static_cast<int64_t>(isa), op});
  }
}
BENCHMARK(RunMap)->Apply(EveryIsa);

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
