#include "packs/vmamba/memory.h"

#include <algorithm>
#include <cmath>

#include "kernels/conv/conv3x3.h"
#include "kernels/image/resize_normalize.h"
#include "kernels/linear/feed_forward.h"
#include "kernels/linear/linear_f16.h"
#include "kernels/op.h"
#include "kernels/scan/cross_scan_f16.h"
#include "packs/vmamba/preprocess.h"
#include "packs/vmamba/weights.h"

namespace mk::vmamba {
namespace {

constexpr int64_t kAlignment = 64;  // of the host's scratch and of each weight

int64_t Aligned(int64_t bytes) { return CeilDiv(bytes, kAlignment) * kAlignment; }

int64_t MapBytes(int64_t tokens, int64_t channels) {
  return Aligned(tokens * channels * static_cast<int64_t>(sizeof(float)));
}

int64_t ConvBytes(int64_t height, int64_t width, int64_t in, int64_t out) {
  Conv3x3Params params = {};
  params.height = height;
  params.width = width;
  params.in_channels = in;
  params.out_channels = out;
  params.stride = 2;
  return Aligned(Conv3x3ScratchBytes(params, kMaxScratchThreads));
}

// What the branches of a stage's blocks take beside the maps.
int64_t BlockBytes(const Description& d, int64_t stage, int64_t tokens) {
  const int64_t inner = d.Inner(stage);
  const int64_t fields = 4 * (d.Rank(stage) + 2 * d.d_state);
  const int64_t states = MapBytes(d.d_state, inner + 63);
  const int64_t scan = MapBytes(tokens, inner) + MapBytes(tokens, fields) + states;
  const int64_t ss2d =
      MapBytes(tokens, d.Projected(stage)) + std::max(MapBytes(tokens, d.Channels(stage)), scan);
  const int64_t mlp = Aligned(
      FeedForwardScratchBytes(tokens, d.Channels(stage), d.Hidden(stage), kMaxScratchThreads));
  return std::max(ss2d, mlp);
}

// The largest sum of two sides of so many pixels: where one is as long as it may be.
int64_t LongestSides(int64_t pixels) {
  const int64_t longest = std::min(kMaxImageSide, pixels);
  return longest + CeilDiv(pixels, longest);
}

// Decoded pixels, and the filters and rows of their resize; see kernels/image.
int64_t ImageBytes(const Preprocessing& p) {
  constexpr int64_t kThreads = 8;
  const int64_t longest = std::min(kMaxImageSide, p.max_encoded_pixels);
  const int64_t window = p.crop != 0 ? p.crop : std::min(kMaxImageSide, p.max_input_pixels);
  // Linear in both, so that two axes take what one of their sums does.
  const int64_t windows = p.crop != 0 ? 2 * p.crop : LongestSides(p.max_input_pixels);
  const int64_t filters = ResizeFilterBytes(LongestSides(p.max_encoded_pixels), windows, p.filter);
  const int64_t rows = kThreads * 4 * p.channels * (longest + window);
  return Aligned(3 * p.max_encoded_pixels) + filters + rows + 8 * kAlignment;
}

constexpr int64_t kDeviceAlignment = 256;

int64_t DeviceBytes(int64_t bytes) { return CeilDiv(bytes, kDeviceAlignment) * kDeviceAlignment; }

int64_t HalfMapBytes(int64_t tokens, int64_t channels) {
  return DeviceBytes(2 * tokens * channels);
}

// Of CrossScanF16: what it takes is a matter of the shape alone.
int64_t DeviceScanBytes(const Description& d, int64_t stage, int64_t height, int64_t width) {
  CrossScanF16Params params = {};
  static const float kSomething = 0;
  params.norm_weight = params.norm_bias = &kSomething;  // there is a norm
  params.height = static_cast<mk_i32>(height);
  params.width = static_cast<mk_i32>(width);
  params.channels = static_cast<mk_i32>(d.Inner(stage));
  params.rank = static_cast<mk_i32>(d.Rank(stage));
  params.state = static_cast<mk_i32>(d.d_state);
  constexpr int64_t kPieces = 8;  // each rounded up by the host, not by 64
  return CrossScanF16Scratch(params) + kPieces * kDeviceAlignment;
}

// What a stage's blocks take beside the maps x.
int64_t DeviceBlockBytes(const Description& d, int64_t stage, int64_t height, int64_t width) {
  const int64_t tokens = height * width;
  const int64_t inner = d.Inner(stage);
  const int64_t stats =
      DeviceBytes(tokens * CeilDiv(d.Channels(stage), kStatsGroup) * int64_t{sizeof(RowStats)});
  const int64_t fields = HalfMapBytes(tokens, 4 * (d.Rank(stage) + 2 * d.d_state));
  const int64_t ss2d = (d.gated ? 3 : 2) * HalfMapBytes(tokens, inner) + fields +
                       DeviceScanBytes(d, stage, height, width);
  return stats + std::max(ss2d, HalfMapBytes(tokens, d.Hidden(stage)));
}

// Of the largest input. A square, or a little more: sides are rounded up to whole multiples of 32,
// and the tokens of any other shape with as many pixels are no more.
int64_t SquareSide(const Description& d) {
  const int64_t pixels = d.preprocessing.max_input_pixels;
  const auto side = static_cast<int64_t>(std::ceil(std::sqrt(pixels)));
  const int64_t multiple = d.SideMultiple();
  return side * side == pixels ? side : CeilDiv(side, multiple) * multiple;
}

}  // namespace

int64_t WeightsBytes(const Description& description) {
  int64_t bytes = 0;
  for (const WeightSpec& spec : WeightTable(description)) {
    int64_t count = 1;
    for (const int64_t dim : spec.shape) count *= dim;
    bytes += MapBytes(count, 1);
  }
  return bytes;
}

int64_t NetworkScratchBytes(const Description& d, int64_t height, int64_t width) {
  const int64_t half_height = Conv3x3OutputSide(height, 2);
  const int64_t half_width = Conv3x3OutputSide(width, 2);
  int64_t h = Conv3x3OutputSide(half_height, 2);
  int64_t w = Conv3x3OutputSide(half_width, 2);
  int64_t maps = MapBytes(h * w, d.embed_dim);
  int64_t peak = maps + MapBytes(half_height * half_width, d.embed_dim / 2) +
                 std::max(ConvBytes(height, width, d.in_chans, d.embed_dim / 2),
                          ConvBytes(half_height, half_width, d.embed_dim / 2, d.embed_dim));
  for (int64_t s = 0; s < d.stages(); ++s) {
    peak = std::max(peak, maps + BlockBytes(d, s, h * w));
    if (s + 1 == d.stages()) break;
    const int64_t conv = ConvBytes(h, w, d.Channels(s), d.Channels(s + 1));
    h = Conv3x3OutputSide(h, 2);
    w = Conv3x3OutputSide(w, 2);
    maps += MapBytes(h * w, d.Channels(s + 1));
    peak = std::max(peak, maps + conv);
  }
  return peak;
}

int64_t DeviceNetworkScratchBytes(const Description& d, int64_t height, int64_t width) {
  const int64_t half_tokens = CeilDiv(height, 2) * CeilDiv(width, 2);
  int64_t h = CeilDiv(CeilDiv(height, 2), 2);
  int64_t w = CeilDiv(CeilDiv(width, 2), 2);
  int64_t maps = HalfMapBytes(h * w, d.embed_dim);
  int64_t peak = maps + HalfMapBytes(half_tokens, d.embed_dim / 2);
  for (int64_t s = 0; s < d.stages(); ++s) {
    peak = std::max(peak, maps + DeviceBlockBytes(d, s, h, w));
    if (s + 1 == d.stages()) break;
    h = CeilDiv(h, 2);
    w = CeilDiv(w, 2);
    maps += HalfMapBytes(h * w, d.Channels(s + 1));
    peak = std::max(peak, maps);
  }
  // The head: features, and the pool's partial sums of 64 tokens each.
  const int64_t last = d.Channels(d.stages() - 1);
  const int64_t head = HalfMapBytes(1, last) + DeviceBytes(4 * last * CeilDiv(h * w, 64));
  return std::max(peak, maps + head);
}

int64_t ScratchBytes(const Description& d) {
  const Preprocessing& p = d.preprocessing;
  const int64_t exact = SquareSide(d);
  const int64_t input = MapBytes(p.max_input_pixels, p.channels);
  return input + std::max(ImageBytes(p), NetworkScratchBytes(d, exact, exact));
}

int64_t DeviceScratchBytes(const Description& d) {
  const Preprocessing& p = d.preprocessing;
  const int64_t square = SquareSide(d);
  // The image as pixels, and filtered along its rows: fp32, its height by the window's width.
  const int64_t pixels = DeviceBytes(3 * std::max(p.max_encoded_pixels, p.max_input_pixels));
  const int64_t window = p.crop != 0 ? p.crop : std::min(kMaxImageSide, p.max_input_pixels);
  const int64_t filtered =
      DeviceBytes(4 * p.channels * std::min(kMaxImageSide, p.max_encoded_pixels) * window);
  return pixels + filtered + HalfMapBytes(p.max_input_pixels, p.channels) +
         DeviceBytes(4 * d.num_classes) + DeviceNetworkScratchBytes(d, square, square);
}

}  // namespace mk::vmamba
