#include "kernels/image/resize_normalize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace mk {
namespace {

constexpr char kOp[] = "ResizeNormalize";
constexpr int64_t kMaxSide = int64_t{1} << 20;
constexpr int64_t kMaxResizedSide = int64_t{1} << 40;
constexpr int64_t kMaxSlices = 8;  // bounds the scratch on machines with many cores

// The filter of one output sample: taps [begin, end) of the source, of which none lies outside of
// the kernel.
struct Filter {
  int64_t begin;
  int64_t end;
  const float* weights;
};

int64_t Radius(mk_u32 filter) { return filter == MK_RESIZE_BICUBIC ? 2 : 1; }

// The kernel at a distance of t >= 0.
double Kernel(mk_u32 filter, double t) {
  if (filter == MK_RESIZE_TRIANGLE) return std::max(0.0, 1.0 - t);
  if (t < 1) return (1.5 * t - 2.5) * t * t + 1;
  return t < 2 ? ((-0.5 * t + 2.5) * t - 4) * t + 2 : 0;
}

// Most taps that one output sample can have: positions closer than the kernel's radius, stretched,
// to the centre.
int64_t MaxTaps(int64_t source, int64_t target, mk_u32 filter) {
  const double scale = static_cast<double>(source) / static_cast<double>(target);
  const auto radius = static_cast<double>(Radius(filter));
  return std::min(source, static_cast<int64_t>(2 * radius * std::max(1.0, scale)) + 2);
}

// Fills `filters` for the samples [first, first + count) of `target`; weights, in double and
// rounded once, go to `weights` of count x MaxTaps.
void MakeFilters(int64_t source, int64_t target, mk_u32 filter, int64_t first, int64_t count,
                 float* weights, Filter* filters) {
  const int64_t max_taps = MaxTaps(source, target, filter);
  const double scale = static_cast<double>(source) / static_cast<double>(target);
  const double stretch = std::max(1.0, scale);
  const double support = static_cast<double>(Radius(filter)) * stretch;
  for (int64_t i = 0; i < count; ++i, weights += max_taps) {
    const double centre = (static_cast<double>(first + i) + 0.5) * scale;
    const auto distance = [&](int64_t j) {
      return std::fabs(static_cast<double>(j) + 0.5 - centre);
    };
    // By distance alone, not by weight: first and last tap then never go back from sample to
    // sample, though the bicubic kernel has zeros inside.
    int64_t begin = std::max<int64_t>(0, static_cast<int64_t>(std::floor(centre - support - 0.5)));
    int64_t end = std::min(source, static_cast<int64_t>(std::ceil(centre + support + 0.5)));
    while (begin < end && distance(begin) >= support) ++begin;
    while (begin < end && distance(end - 1) >= support) --end;
    double sum = 0;
    for (int64_t j = begin; j < end; ++j) sum += Kernel(filter, distance(j) / stretch);
    for (int64_t j = begin; j < end; ++j) {
      weights[j - begin] = static_cast<float>(Kernel(filter, distance(j) / stretch) / sum);
    }
    filters[i] = {begin, end, weights};
  }
}

float Clamped(float sample) { return std::min(255.0f, std::max(0.0f, sample)); }

// Step 1 for pixels [begin, end) of one row, to [end - begin, out_channels] at `out`.
void ConvertPixels(const mk_u8* row, int64_t channels, int64_t out_channels, int64_t begin,
                   int64_t end, float* out) {
  const mk_u8* in = row + begin * channels;
  const int64_t count = end - begin;
  if (channels == out_channels) {
    for (int64_t i = 0; i < count * channels; ++i) out[i] = static_cast<float>(in[i]);
  } else if (out_channels == 1) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] =
          (static_cast<float>(in[3 * i]) * 0.299f + static_cast<float>(in[3 * i + 1]) * 0.587f) +
          static_cast<float>(in[3 * i + 2]) * 0.114f;
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = static_cast<float>(in[i]);
    }
  }
}

// Step 2 along x: `pixels` begins at source column `origin`.
template <int kChannels>
void FilterRow(const float* pixels, int64_t origin, const Filter* filters, int64_t count,
               float* out) {
  for (int64_t i = 0; i < count; ++i, out += kChannels) {
    const Filter& filter = filters[i];
    const float* in = pixels + (filter.begin - origin) * kChannels;
    float sum[kChannels] = {};
    for (int64_t j = 0; j < filter.end - filter.begin; ++j, in += kChannels) {
      for (int c = 0; c < kChannels; ++c) sum[c] += filter.weights[j] * in[c];
    }
    for (int c = 0; c < kChannels; ++c) out[c] = sum[c];
  }
}

// What the bands of output rows share.
struct Plan {
  const ResizeNormalizeParams& p;
  const Filter* columns;  // [crop_width]
  const Filter* rows;     // [crop_height]
  int64_t first_column;   // source columns under the window
  int64_t end_column;
  int64_t row_floats;  // of scratch per slice: one row of pixels, one filtered row

  float* OutputRow(int64_t i) const {  // row i of the window, inside the padding
    const int64_t stride = (p.crop_width + 2 * p.pad) * p.out_channels;
    return p.y + (i + p.pad) * stride + p.pad * p.out_channels;
  }
};

// Steps 1 and 2 for rows [begin, end) of the window. `scratch` holds plan.row_floats.
void FilterBand(const Plan& plan, int64_t begin, int64_t end, float* scratch) {
  const ResizeNormalizeParams& p = plan.p;
  float* const pixels = scratch;
  float* const filtered = scratch + (plan.end_column - plan.first_column) * p.out_channels;
  const int64_t row_size = p.crop_width * p.out_channels;
  int64_t first = begin;  // the first output row that still takes source rows
  for (int64_t j = plan.rows[begin].begin; j < plan.rows[end - 1].end; ++j) {
    ConvertPixels(p.image + j * p.width * p.channels, p.channels, p.out_channels, plan.first_column,
                  plan.end_column, pixels);
    const auto filter_row = p.out_channels == 1 ? &FilterRow<1> : &FilterRow<3>;
    filter_row(pixels, plan.first_column, plan.columns, p.crop_width, filtered);
    if (p.filter == MK_RESIZE_BICUBIC)
      std::transform(filtered, filtered + row_size, filtered, Clamped);
    while (plan.rows[first].end <= j) ++first;
    for (int64_t i = first; i < end && plan.rows[i].begin <= j; ++i) {
      const float weight = plan.rows[i].weights[j - plan.rows[i].begin];
      float* out = plan.OutputRow(i);
      for (int64_t c = 0; c < row_size; ++c) out[c] += weight * filtered[c];
    }
  }
}

// Step 5, over all of y: the padding is 0 so far.
void Normalize(const ResizeNormalizeParams& p) {
  const int64_t count = (p.crop_height + 2 * p.pad) * (p.crop_width + 2 * p.pad);
  float* y = p.y;
  if (p.filter == MK_RESIZE_BICUBIC) std::transform(y, y + count * p.out_channels, y, Clamped);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < p.out_channels; ++c, ++y) *y = (*y / 255.0f - p.mean[c]) / p.std[c];
  }
}

Status CheckWindow(const char* axis, int64_t begin, int64_t size, int64_t side) {
  if (begin >= 0 && begin <= side - size) return Ok();
  return InvalidArgument(std::string(kOp) + ": " + axis + " window " + std::to_string(begin) + "+" +
                         std::to_string(size) + " not in 0.." + std::to_string(side));
}

Status CheckChannels(const char* name, int64_t channels) {
  if (channels == 1 || channels == 3) return Ok();
  return InvalidArgument(std::string(kOp) + ": " + name + " " + std::to_string(channels) +
                         " is neither 1 nor 3");
}

}  // namespace

Status CheckResizeNormalize(const ResizeNormalizeParams& p) {
  MK_TRY(CheckPointer(kOp, "image", p.image));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  MK_TRY(CheckRange(kOp, "height", p.height, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "width", p.width, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "resized_height", p.resized_height, 1, kMaxResizedSide));
  MK_TRY(CheckRange(kOp, "resized_width", p.resized_width, 1, kMaxResizedSide));
  MK_TRY(CheckRange(kOp, "crop_height", p.crop_height, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "crop_width", p.crop_width, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "pad", p.pad, 0, kMaxSide));
  MK_TRY(CheckWindow("y", p.crop_top, p.crop_height, p.resized_height));
  MK_TRY(CheckWindow("x", p.crop_left, p.crop_width, p.resized_width));
  MK_TRY(CheckChannels("channels", p.channels));
  MK_TRY(CheckChannels("out_channels", p.out_channels));
  MK_TRY(CheckRange(kOp, "filter", p.filter, MK_RESIZE_TRIANGLE, MK_RESIZE_BICUBIC));
  for (int64_t c = 0; c < p.out_channels; ++c) {
    if (std::isfinite(p.mean[c]) && std::isfinite(p.std[c]) && p.std[c] != 0) continue;
    return InvalidArgument(std::string(kOp) + ": mean " + std::to_string(p.mean[c]) + ", std " +
                           std::to_string(p.std[c]) + " of channel " + std::to_string(c) +
                           " must be finite, std not 0");
  }
  return Ok();
}

OpCost ResizeNormalizeCost(const ResizeNormalizeParams& p) {
  const int64_t out = (p.crop_height + 2 * p.pad) * (p.crop_width + 2 * p.pad) * p.out_channels;
  const int64_t in = p.height * p.width * p.channels;
  // The window's share of each axis is filtered: at most two taps per source sample, axis and unit
  // of the kernel's radius.
  const int64_t taps = Radius(p.filter);
  return {in + out * static_cast<int64_t>(sizeof(float)), 4 * taps * in + 6 * out};
}

int64_t ResizeFilterBytes(int64_t source, int64_t window, mk_u32 filter) {
  // taps <= 2 r max(1, n / m) + 2 and window <= m, so the window's taps are at most
  // 2 r n + (2 r + 2) window.
  const int64_t radius = Radius(filter);
  const int64_t taps = 2 * radius * source + (2 * radius + 2) * window;
  return taps * static_cast<int64_t>(sizeof(float)) + window * static_cast<int64_t>(sizeof(Filter));
}

Status ResizeNormalizeCpu(Context& context, const ResizeNormalizeParams& p) {
  const ScratchScope scope(context);
  MK_TRY_ASSIGN(Filter* const columns, context.Scratch<Filter>(p.crop_width));
  MK_TRY_ASSIGN(Filter* const rows, context.Scratch<Filter>(p.crop_height));
  MK_TRY_ASSIGN(float* const column_weights,
                context.Scratch<float>(p.crop_width * MaxTaps(p.width, p.resized_width, p.filter)));
  MK_TRY_ASSIGN(
      float* const row_weights,
      context.Scratch<float>(p.crop_height * MaxTaps(p.height, p.resized_height, p.filter)));
  MakeFilters(p.width, p.resized_width, p.filter, p.crop_left, p.crop_width, column_weights,
              columns);
  MakeFilters(p.height, p.resized_height, p.filter, p.crop_top, p.crop_height, row_weights, rows);

  Plan plan = {p, columns, rows, columns[0].begin, columns[p.crop_width - 1].end, 0};
  const int64_t source_columns = plan.end_column - plan.first_column;
  plan.row_floats = (source_columns + p.crop_width) * p.out_channels;
  const int64_t steps = (rows[p.crop_height - 1].end - rows[0].begin) * plan.row_floats;
  const int64_t slices = std::max<int64_t>(
      1, std::min({context.host().threads(), kMaxSlices, steps / kMinRangeSteps, p.crop_height}));
  const int64_t slice_rows = CeilDiv(p.crop_height, slices);
  MK_TRY_ASSIGN(float* const scratch, context.Scratch<float>(slices * plan.row_floats));

  std::fill_n(p.y, (p.crop_height + 2 * p.pad) * (p.crop_width + 2 * p.pad) * p.out_channels, 0.0f);
  context.ParallelFor(slices, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slice = begin; slice < end; ++slice) {
      const int64_t first = slice * slice_rows;
      const int64_t last = std::min(first + slice_rows, p.crop_height);
      if (first < last) FilterBand(plan, first, last, scratch + slice * plan.row_floats);
    }
  });
  Normalize(p);
  return Ok();
}

Status ResizeNormalize(Context& context, const ResizeNormalizeParams& params) {
  MK_TRY(CheckResizeNormalize(params));
  if (context.device() == DeviceKind::kCpu) return ResizeNormalizeCpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
