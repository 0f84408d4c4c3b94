#include "kernels/conv/conv3x3.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/linear/epilogue.h"

namespace mk {
namespace {

constexpr char kOp[] = "Conv3x3";
constexpr int64_t kMaxSide = int64_t{1} << 24;
constexpr int64_t kMaxChannels = int64_t{1} << 20;
constexpr int64_t kTaps = 9;
// Positions of a panel: enough that the library's packing of the weight is spread over them, few
// enough that the gathered rows are still in the L2 cache when the product reads them.
constexpr int64_t kPanelBytes = 1 << 20;
constexpr int64_t kMinPanelRows = 64;

// The three taps of one row of the kernel at output column `ox`: 3 ci values, contiguous in x but
// for what lies outside the map.
void GatherTaps(const Conv3x3Params& p, int64_t iy, int64_t ox, float* out) {
  const int64_t ci = p.in_channels;
  if (iy < 0 || iy >= p.height) {
    std::fill_n(out, 3 * ci, 0.0f);
    return;
  }
  const int64_t first = ox * p.stride - 1;
  const int64_t begin = std::max<int64_t>(first, 0);
  const int64_t end = std::min(first + 3, p.width);
  std::fill_n(out, (begin - first) * ci, 0.0f);
  std::memcpy(out + (begin - first) * ci, p.x + (iy * p.width + begin) * ci,
              static_cast<size_t>((end - begin) * ci) * sizeof(float));
  std::fill_n(out + (end - first) * ci, (first + 3 - end) * ci, 0.0f);
}

// Output positions [begin, begin + rows), in row-major order, with `gathered` of rows x 9 ci.
Status RunPanel(Context& context, const Conv3x3Params& p, Isa isa, int64_t begin, int64_t rows,
                float* gathered) {
  const int64_t out_width = Conv3x3OutputSide(p.width, p.stride);
  const int64_t k = kTaps * p.in_channels;
  int64_t oy = begin / out_width;
  int64_t ox = begin % out_width;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t ky = 0; ky < 3; ++ky) {
      GatherTaps(p, oy * p.stride + ky - 1, ox, gathered + row * k + ky * 3 * p.in_channels);
    }
    if (++ox == out_width) ox = 0, ++oy;
  }
  mk_sgemm_args gemm = {};
  gemm.m = rows;
  gemm.n = p.out_channels;
  gemm.k = k;
  gemm.alpha = 1.0f;
  gemm.a = gathered;
  gemm.lda = k;
  gemm.b = p.weight;
  gemm.ldb = p.out_channels;
  gemm.c = p.y + begin * p.out_channels;
  gemm.ldc = p.out_channels;
  MK_TRY(context.Sgemm(gemm));
  MK_SIMD_PICK(isa, Epilogue)
  ({gemm.c, p.bias, nullptr, rows, p.out_channels, Activation::kNone});
  return Ok();
}

// How positions are split: slices that run at once, and rows that one gathers at once.
struct Split {
  int64_t slices, slice_rows, panel_rows;
};

Split SplitPositions(const Conv3x3Params& p, int64_t threads) {
  const int64_t positions =
      Conv3x3OutputSide(p.height, p.stride) * Conv3x3OutputSide(p.width, p.stride);
  const int64_t k = kTaps * p.in_channels;
  // One slice of positions, and of scratch, per thread that has work enough.
  const int64_t worth = std::max<int64_t>(1, positions * p.out_channels * k / kMinRangeMacs);
  Split split;
  split.slices = std::min({threads, worth, positions, kMaxScratchThreads});
  split.slice_rows = CeilDiv(positions, split.slices);
  const int64_t fitting_rows = kPanelBytes / (k * static_cast<int64_t>(sizeof(float)));
  split.panel_rows = std::min(split.slice_rows, std::max(kMinPanelRows, fitting_rows));
  return split;
}

}  // namespace

int64_t Conv3x3ScratchBytes(const Conv3x3Params& p, int64_t threads) {
  // Fewer threads may take less or, of a small map, longer panels each: the most of all counts.
  int64_t most = 0;
  for (int64_t n = 1; n <= std::min(threads, kMaxScratchThreads); ++n) {
    const Split split = SplitPositions(p, n);
    most = std::max(most, split.slices * split.panel_rows);
  }
  return most * kTaps * p.in_channels * static_cast<int64_t>(sizeof(float));
}

void RelayConv3x3Weight(const float* stored, int64_t out_channels, int64_t in_channels,
                        float* weight) {
  for (int64_t o = 0; o < out_channels; ++o) {
    for (int64_t c = 0; c < in_channels; ++c) {
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        weight[(tap * in_channels + c) * out_channels + o] =
            stored[(o * in_channels + c) * kTaps + tap];
      }
    }
  }
}

Status CheckConv3x3(const Conv3x3Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "weight", p.weight));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  MK_TRY(CheckRange(kOp, "height", p.height, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "width", p.width, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "in_channels", p.in_channels, 1, kMaxChannels));
  MK_TRY(CheckRange(kOp, "out_channels", p.out_channels, 1, kMaxChannels));
  MK_TRY(CheckRange(kOp, "stride", p.stride, 1, 2));
  MK_TRY(CheckElements(kOp, "x", p.height * p.width, p.in_channels));
  MK_TRY(CheckElements(kOp, "y",
                       Conv3x3OutputSide(p.height, p.stride) * Conv3x3OutputSide(p.width, p.stride),
                       p.out_channels));
  if (p.x == p.y) return InvalidArgument("Conv3x3: y is x");
  return Ok();
}

OpCost Conv3x3Cost(const Conv3x3Params& p) {
  const int64_t positions =
      Conv3x3OutputSide(p.height, p.stride) * Conv3x3OutputSide(p.width, p.stride);
  const int64_t elements = p.height * p.width * p.in_channels +
                           kTaps * p.in_channels * p.out_channels + positions * p.out_channels +
                           (p.bias != nullptr ? p.out_channels : 0);
  return {elements * static_cast<int64_t>(sizeof(float)),
          2 * kTaps * positions * p.in_channels * p.out_channels};
}

Status Conv3x3Cpu(Context& context, const Conv3x3Params& p, Isa isa) {
  const int64_t positions =
      Conv3x3OutputSide(p.height, p.stride) * Conv3x3OutputSide(p.width, p.stride);
  const int64_t k = kTaps * p.in_channels;
  const auto [slices, slice_rows, panel_rows] = SplitPositions(p, context.host().threads());
  const ScratchScope scope(context);
  MK_TRY_ASSIGN(float* const gathered, context.Scratch<float>(slices * panel_rows * k));
  std::atomic<mk_status> failure{MK_OK};
  context.ParallelFor(
      slices, 1, [&, slice_rows = slice_rows, panel_rows = panel_rows](int64_t begin, int64_t end) {
        for (int64_t slice = begin; slice < end; ++slice) {
          const int64_t last = std::min((slice + 1) * slice_rows, positions);
          for (int64_t row = slice * slice_rows; row < last; row += panel_rows) {
            const Status status = RunPanel(context, p, isa, row, std::min(panel_rows, last - row),
                                           gathered + slice * panel_rows * k);
            // Relaxed: ParallelFor's return publishes it.
            if (!status.ok()) failure.store(status.code(), std::memory_order_relaxed);
          }
        }
      });
  const mk_status code = failure.load(std::memory_order_relaxed);
  if (code == MK_OK) return Ok();
  return {code, "Conv3x3: sgemm failed for " + std::to_string(p.in_channels) + " to " +
                    std::to_string(p.out_channels) + " channels"};
}

Status Conv3x3(Context& context, const Conv3x3Params& params) {
  MK_TRY(CheckConv3x3(params));
  if (context.device() == DeviceKind::kCpu) return Conv3x3Cpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
