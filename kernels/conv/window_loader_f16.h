// Rows of the matrix that makes a convolution of a channel-last map a matrix product: row (i, j)
// has what the window at output position (i, j) sees, [ky, kx, channel], and is never stored:
// chunks go from the map to shared memory as the main loop (kernels/linear/matmul_f16.h) wants
// them, and zeros for what lies outside. Device code.
//
// Source: ours.
#ifndef MERGEKERNEL_KERNELS_CONV_WINDOW_LOADER_F16_H_
#define MERGEKERNEL_KERNELS_CONV_WINDOW_LOADER_F16_H_

#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"
#include "kernels/linear/load_f16.h"
#include "kernels/linear/matmul_f16.h"

namespace mk {
namespace device {

struct WindowMap {
  const half* x;  // [height, width, channels] fp16, device, dense
  int height, width, channels;
  int out_width;           // positions in a row of the output
  mk_i64 positions;        // of the output
  int stride_y, stride_x;  // from window to window
  int padding;             // rows and columns of zeros before the map
  int taps;                // of the window: its width times its height
};

// A window is a square of kWindowWidth, or one column of any height without padding. kVector: by 16
// bytes; REQUIRES channels to be a multiple of 8 and x aligned to 16 bytes, so that
// a chunk lies within one tap.
template <int kRows, int kThreads, bool kVector, int kWindowWidth>
class WindowLoader {
 public:
  static constexpr bool kAsync = kVector;

  // The windows of positions position0, ...
  MK_DEVICE WindowLoader(const WindowMap& map, mk_i64 position0, int thread)
      : map_(map), row_(thread / kRowChunksF16), chunk_(thread % kRowChunksF16), tap_(0) {
    MK_UNROLL
    for (int i = 0; i < kThreadRows; ++i) {
      const mk_i64 position = position0 + row_ + i * kRowStep;
      const int at = static_cast<int>(Min(position, map.positions - 1));
      const int y = at / map.out_width;
      const int top = y * map.stride_y - map.padding;
      const int left = (at - y * map.out_width) * map.stride_x - map.padding;
      seen_[i] = position < map.positions ? TapsInside(top, left) : 0;
      corner_[i] = map.x + (static_cast<mk_i64>(top) * map.width + left) * map.channels;
    }
    channel_ = chunk_ * kChunkF16;
    Wrap(tap_, channel_);
  }

  MK_DEVICE void Copy(half* stage, int) {
    if constexpr (kVector) {
      CopyChunks(stage);
    } else {
      CopyHalves(stage);
    }
    channel_ += kTileDepthF16;
    Wrap(tap_, channel_);
  }

 private:
  static constexpr int kRowStep = kThreads / kRowChunksF16;
  static constexpr int kThreadRows = kRows / kRowStep;
  static_assert(kRows % kRowStep == 0 && kRowStep % 8 == 0, "each thread has as many rows");

  // Channels past the last one are those of the next tap.
  MK_DEVICE void Wrap(int& tap, int& channel) const {
    while (channel >= map_.channels) channel -= map_.channels, ++tap;
  }

  // A bit per tap that lies in the map. A window of one column has no padding, so that it lies
  // there whole: one bit says so, for any number of taps.
  MK_DEVICE mk_u32 TapsInside(int top, int left) const {
    if constexpr (kWindowWidth == 1) return 1;
    mk_u32 seen = 0;
    MK_UNROLL
    for (int tap = 0; tap < kWindowWidth * kWindowWidth; ++tap) {
      const int y = top + tap / kWindowWidth, x = left + tap % kWindowWidth;
      const bool inside = y >= 0 && y < map_.height && x >= 0 && x < map_.width;
      seen |= static_cast<mk_u32>(inside) << tap;
    }
    return seen;
  }

  MK_DEVICE bool Inside(int i, int tap) const {
    return tap < map_.taps && ((kWindowWidth == 1 ? seen_[i] : seen_[i] >> tap) & 1u) != 0;
  }

  // From a window's corner, in elements.
  MK_DEVICE mk_i64 OffsetOf(int tap, int channel) const {
    return (static_cast<mk_i64>(tap / kWindowWidth) * map_.width + tap % kWindowWidth) *
               map_.channels +
           channel;
  }

  MK_DEVICE void CopyChunks(half* stage) const {
    const mk_i64 offset = OffsetOf(tap_, channel_);
    MK_UNROLL
    for (int i = 0; i < kThreadRows; ++i) {
      const bool inside = Inside(i, tap_);
      CopyAsync<16>(stage + ChunkOffset(row_ + i * kRowStep, chunk_),
                    inside ? corner_[i] + offset : map_.x, inside ? 16 : 0);
    }
  }

  MK_DEVICE void CopyHalves(half* stage) const {
    MK_UNROLL
    for (int i = 0; i < kThreadRows; ++i) {
      Words4 words = {};
      int tap = tap_, channel = channel_;
      MK_UNROLL
      for (int e = 0; e < kChunkF16; ++e) {
        if (Inside(i, tap)) {
          const half h = Load(corner_[i] + OffsetOf(tap, channel));
          words.word[e / 2] |= mk_u32{h.bits} << (e % 2 * 16);
        }
        ++channel;
        Wrap(tap, channel);
      }
      Store(As<Words4>(stage + ChunkOffset(row_ + i * kRowStep, chunk_)), words);
    }
  }

  const WindowMap& map_;
  int row_, chunk_;
  int tap_, channel_;         // of this thread's next chunk
  mk_u32 seen_[kThreadRows];  // taps of its windows that lie in the map
  const half* corner_[kThreadRows];
};

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_CONV_WINDOW_LOADER_F16_H_
