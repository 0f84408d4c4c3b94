// ResizeNormalize on the images of real requests: time and bytes of image per second. The second
// argument is the thread count.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/image/resize_normalize.h"
#include "kernels/image/resize_normalize_shapes.h"
#include "kernels/testing/test_context.h"

namespace mk {
namespace {

void RunResizeNormalize(benchmark::State& state) {
  const ResizeNormalizeShape& s = kResizeNormalizeModelShapes[state.range(0)];
  testing::TestContext context(static_cast<int>(state.range(1)));
  std::vector<uint8_t> image(static_cast<size_t>(s.height * s.width * s.channels));
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(i * 2654435761u >> 24);
  std::vector<float> y(static_cast<size_t>((s.crop_height + 2 * s.pad) *
                                           (s.crop_width + 2 * s.pad) * s.out_channels));
  const ResizeNormalizeParams params = {
      image.data(),   y.data(),           s.height,           s.width,
      s.channels,     s.resized_height,   s.resized_width,    s.crop_top,
      s.crop_left,    s.crop_height,      s.crop_width,       s.pad,
      s.out_channels, {0.5f, 0.5f, 0.5f}, {0.2f, 0.2f, 0.2f}, MK_RESIZE_BICUBIC};
  for (auto _ : state) {
    if (!ResizeNormalize(*context, params).ok()) state.SkipWithError("ResizeNormalize failed");
  }
  state.SetLabel(s.name);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(image.size()));
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t i = 0; i < static_cast<int64_t>(std::size(kResizeNormalizeModelShapes)); ++i) {
    for (const int64_t threads : {1, 2}) bench->Args({i, threads});
  }
}
BENCHMARK(RunResizeNormalize)->Apply(Shapes)->UseRealTime();

}  // namespace
}  // namespace mk

BENCHMARK_MAIN();
