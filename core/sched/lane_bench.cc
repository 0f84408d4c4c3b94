// What the lanes cost: one request at a time through Submit, a lane and the completion, with a pack
// that does nothing. `wake_us` is the part from Submit to the lane.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>

#include "core/base/clock.h"
#include "core/sched/lane_executor.h"
#include "core/sched/testing/fake_generation.h"

namespace mk {
namespace {

void BM_OneAtATime(benchmark::State& state) {
  FakeGeneration::Options options;
  options.lanes = static_cast<int>(state.range(0));
  FakeGeneration generation(options);
  HostPool outputs(1 << 20, 1 << 20);
  auto executor = NewLaneExecutor(generation, {}, outputs, SystemClock());
  if (!executor.ok()) return state.SkipWithError("no executor");
  int64_t wake_ns = 0;
  for (auto unused : state) {
    static_cast<void>(unused);
    const Sent sent = Send(**executor, 1);
    sent.answer->Wait();
    const RequestTimes times = sent.answer->times();
    wake_ns += times.started_ns - times.queued_ns;
  }
  (*executor)->Stop();
  state.counters["wake_us"] =
      static_cast<double>(wake_ns) * 1e-3 / static_cast<double>(state.iterations());
}
BENCHMARK(BM_OneAtATime)->Arg(1)->Arg(4)->UseRealTime();

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
