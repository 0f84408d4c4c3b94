// vmamba-pico in this process, one image at a time: latency and images per second. The argument is
// the thread count. The first case is the network's own 28 x 28 image, the second a photograph that
// must be shrunk first.
#include <benchmark/benchmark.h>

#include <vector>

#include "packs/vmamba/testing/fixture.h"

namespace mk::vmamba {
namespace {

void Serve(benchmark::State& state, int64_t height, int64_t width, int64_t channels) {
  OpenModel open = OpenModel::Pico(static_cast<int>(state.range(0)));
  std::vector<uint8_t> pixels(static_cast<size_t>(height * width * channels));
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(i * 2654435761u >> 24);
  }
  testing::TestRun run;
  AddImage(run, height, width, channels, pixels);
  for (auto _ : state) {
    const Status status = open.Run(run);
    if (!status.ok()) state.SkipWithError(status.message().c_str());
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["scratch_peak_bytes"] = static_cast<double>(run.scratch_peak_bytes());
}

void PicoOwnSize(benchmark::State& state) { Serve(state, 28, 28, 1); }
void PicoPhoto(benchmark::State& state) { Serve(state, 1080, 1920, 3); }
BENCHMARK(PicoOwnSize)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(PicoPhoto)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace mk::vmamba

BENCHMARK_MAIN();
