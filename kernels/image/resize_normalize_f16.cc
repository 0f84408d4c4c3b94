#include "kernels/image/resize_normalize_f16.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/image/resize_normalize.h"

namespace mk {
namespace {

constexpr char kOp[] = "ResizeNormalizeF16";
constexpr int64_t kMaxRows = 65535;  // a grid's y
constexpr int64_t kMaxPad = int64_t{1} << 14;
constexpr int64_t kThreads = 128;

bool Resizes(const ResizeNormalizeF16Params& p) {
  return p.resized_height != p.height || p.resized_width != p.width;
}

// The source samples under [first, first + count) of `target` ones: as TapsOf of the device code.
struct Range {
  int64_t begin, end;
};
Range SourceOf(int64_t source, int64_t target, int64_t first, int64_t count, mk_u32 filter) {
  const int64_t radius = filter == MK_RESIZE_TRIANGLE ? 1 : 2;
  const int64_t reach = radius * 2 * std::max(source, target);
  const int64_t low = (2 * first + 1) * source - reach;
  const int64_t high = (2 * (first + count) - 1) * source + reach;
  return {low < 0 ? 0 : (low / target + 1) / 2, std::min(source, CeilDiv(high, target) / 2)};
}

int64_t OutPixels(const ResizeNormalizeF16Params& p) {
  return (p.crop_height + 2 * p.pad) * (p.crop_width + 2 * p.pad);
}

Dim3 GridOf(int64_t columns, int64_t rows) {
  return {static_cast<uint32_t>(CeilDiv(columns, kThreads)), static_cast<uint32_t>(rows)};
}

ResizeNormalizeF16Launch LaunchOf(const ResizeNormalizeF16Params& p) {
  const Range rows = SourceOf(p.height, p.resized_height, p.crop_top, p.crop_height, p.filter);
  return {p, nullptr, rows.begin, rows.end - rows.begin};
}

int64_t FilteredElements(const ResizeNormalizeF16Launch& launch) {
  return launch.source_rows * launch.p.crop_width * launch.p.out_channels;
}

LaunchCost DirectCost(const ResizeNormalizeF16Params& p) {
  const auto out = static_cast<uint64_t>(OutPixels(p) * p.out_channels);
  const auto in = static_cast<uint64_t>(p.crop_height * p.crop_width * p.channels);
  return {in + 2 * out, 3 * out, 0};
}

// A tap takes some 2 FLOP a channel and 12 for its weight, twice.
LaunchCost AcrossCost(const ResizeNormalizeF16Launch& launch) {
  const ResizeNormalizeF16Params& p = launch.p;
  const Range columns = SourceOf(p.width, p.resized_width, p.crop_left, p.crop_width, p.filter);
  const int64_t in = launch.source_rows * (columns.end - columns.begin) * p.channels;
  const int64_t taps = launch.source_rows *
                       std::max(p.crop_width, 2 * (columns.end - columns.begin)) *
                       (p.filter == MK_RESIZE_TRIANGLE ? 1 : 2);
  return {static_cast<uint64_t>(in + FilteredElements(launch) * 4),
          static_cast<uint64_t>(taps * (24 + 2 * p.out_channels)), 0};
}

LaunchCost DownCost(const ResizeNormalizeF16Launch& launch) {
  const ResizeNormalizeF16Params& p = launch.p;
  const int64_t out = OutPixels(p) * p.out_channels;
  const int64_t taps = p.crop_width * std::max(p.crop_height, 2 * launch.source_rows) *
                       (p.filter == MK_RESIZE_TRIANGLE ? 1 : 2);
  return {static_cast<uint64_t>(FilteredElements(launch) * 4 + 2 * out),
          static_cast<uint64_t>(taps * (24 + 2 * p.out_channels) + 3 * out), 0};
}

}  // namespace

Result<ResizeNormalizeF16Kernels> ResizeNormalizeF16Kernels::Load(const Host& host,
                                                                  const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  ResizeNormalizeF16Kernels k;
  const auto find = [&](const char* name) {
    return host.FindKernel<ResizeNormalizeF16Launch>(loaded, name);
  };
  MK_TRY_ASSIGN(k.direct, find("mk_resize_normalize_f16_direct"));
  MK_TRY_ASSIGN(k.across, find("mk_resize_normalize_f16_across"));
  MK_TRY_ASSIGN(k.down, find("mk_resize_normalize_f16_down"));
  return k;
}

Status CheckResizeNormalizeF16(const ResizeNormalizeF16Params& p) {
  ResizeNormalizeParams plain = {p.image,
                                 reinterpret_cast<float*>(p.y),
                                 p.height,
                                 p.width,
                                 p.channels,
                                 p.resized_height,
                                 p.resized_width,
                                 p.crop_top,
                                 p.crop_left,
                                 p.crop_height,
                                 p.crop_width,
                                 p.pad,
                                 p.out_channels,
                                 {},
                                 {},
                                 p.filter};
  std::copy(p.mean, p.mean + 3, plain.mean);
  std::copy(p.std, p.std + 3, plain.std);
  const Status status = CheckResizeNormalize(plain);
  if (!status.ok()) {  // "ResizeNormalize: ..."
    return InvalidArgument(kOp + status.message().substr(status.message().find(':')));
  }
  MK_TRY(CheckRange(kOp, "height", p.height, 1, kMaxRows));
  MK_TRY(CheckRange(kOp, "pad", p.pad, 0, kMaxPad));
  return CheckRange(kOp, "crop_height + 2 pad", p.crop_height + 2 * p.pad, 1, kMaxRows);
}

LaunchCost ResizeNormalizeF16Cost(const ResizeNormalizeF16Params& p) {
  if (!Resizes(p)) return DirectCost(p);
  const ResizeNormalizeF16Launch launch = LaunchOf(p);
  const LaunchCost across = AcrossCost(launch);
  const LaunchCost down = DownCost(launch);
  return {across.bytes + down.bytes, across.flops + down.flops, 0};
}

int64_t ResizeNormalizeF16Scratch(const ResizeNormalizeF16Params& p) {
  return Resizes(p) ? FilteredElements(LaunchOf(p)) * static_cast<int64_t>(sizeof(float)) : 0;
}

Status ResizeNormalizeF16(Context& context, const ResizeNormalizeF16Kernels& kernels,
                          const ResizeNormalizeF16Params& params) {
  MK_TRY(CheckResizeNormalizeF16(params));
  ResizeNormalizeF16Launch launch = LaunchOf(params);
  const Dim3 out = GridOf(params.crop_width + 2 * params.pad, params.crop_height + 2 * params.pad);
  const Dim3 block = {static_cast<uint32_t>(kThreads)};
  if (!Resizes(params)) {
    return context.Launch(kernels.direct, out, block, 0, launch, DirectCost(params));
  }
  const ScratchScope scope(context);
  MK_TRY_ASSIGN(launch.filtered, context.Scratch<float>(FilteredElements(launch)));
  MK_TRY(context.Launch(kernels.across, GridOf(params.crop_width, launch.source_rows), block, 0,
                        launch, AcrossCost(launch)));
  return context.Launch(kernels.down, out, block, 0, launch, DownCost(launch));
}

}  // namespace mk
