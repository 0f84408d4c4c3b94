#include "kernels/linear/feed_forward.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "kernels/linear/product.h"
#include "kernels/math/activation.h"
#include "kernels/norm/layer_norm.h"
#include "kernels/norm/layer_norm_simd.h"

namespace mk {
namespace {

constexpr char kOp[] = "FeedForward";
constexpr int64_t kMaxRows = INT32_MAX;
constexpr int64_t kMaxChannels = int64_t{1} << 20;

// Rows of a tile: tall enough that the library's packing of the two weights, which it does anew for
// each, is spread over them; no taller, so that the hidden layer stays near and its scratch small.
// Fixed, as the products' own tiles are, so that results do not depend on the number of threads.
constexpr int64_t kTileRows = 384;

int64_t Lanes(int64_t rows, int64_t tile_rows, int64_t threads) {
  return std::min({threads, CeilDiv(rows, tile_rows), kMaxScratchThreads});
}

// The two products of `rows` rows at x, with a normed of [rows, channels] and a hidden of
// [rows, hidden].
Product First(const FeedForwardParams& p, const float* normed, float* hidden, int64_t rows) {
  return {normed, p.weight1, true,     p.bias1,    nullptr,
          hidden, rows,      p.hidden, p.channels, p.activation};
}

Product Second(const FeedForwardParams& p, const float* hidden, float* x, int64_t rows) {
  return {hidden, p.weight2, true, p.bias2, x, x, rows, p.channels, p.hidden, Activation::kNone};
}

LayerNormParams NormOf(const FeedForwardParams& p, const float* x, float* normed, int64_t rows) {
  return {x, p.norm_weight, p.norm_bias, normed, rows, p.channels, p.epsilon, Activation::kNone};
}

// Rows [begin, begin + rows) on the calling thread.
Status RunRows(Context& context, const FeedForwardParams& p, Isa isa, int64_t begin, int64_t rows,
               float* normed, float* hidden) {
  float* x = p.x + begin * p.channels;
  MK_SIMD_PICK(isa, NormRows)(NormOf(p, x, normed, rows), 0, rows);
  MK_TRY(RunTile(context, First(p, normed, hidden, rows), {0, rows, 0, p.hidden}, isa));
  return RunTile(context, Second(p, hidden, x, rows), {0, rows, 0, p.channels}, isa);
}

// All rows, each step on all threads.
Status RunWhole(Context& context, const FeedForwardParams& p, Isa isa, float* normed,
                float* hidden) {
  MK_TRY(LayerNormCpu(context, NormOf(p, p.x, normed, p.rows), isa));
  MK_TRY(RunProduct(context, First(p, normed, hidden, p.rows), isa));
  return RunProduct(context, Second(p, hidden, p.x, p.rows), isa);
}

// Tiles of rows, each on one thread with scratch of its own.
Status RunTiles(Context& context, const FeedForwardParams& p, Isa isa, int64_t tile_rows,
                int64_t lanes, float* scratch) {
  const int64_t tiles = CeilDiv(p.rows, tile_rows);
  const int64_t tile_floats = tile_rows * (p.channels + p.hidden);
  std::atomic<int64_t> next{0};
  std::atomic<mk_status> failure{MK_OK};
  // Relaxed: tiles are disjoint, and ParallelFor's return publishes what was done.
  context.ParallelFor(lanes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; ++lane) {
      float* const normed = scratch + lane * tile_floats;
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tiles;) {
        const int64_t row = i * tile_rows;
        const Status status = RunRows(context, p, isa, row, std::min(tile_rows, p.rows - row),
                                      normed, normed + tile_rows * p.channels);
        if (!status.ok()) failure.store(status.code(), std::memory_order_relaxed);
      }
    }
  });
  const mk_status code = failure.load(std::memory_order_relaxed);
  return code == MK_OK ? Ok() : Status(code, "");
}

}  // namespace

Status CheckFeedForward(const FeedForwardParams& p) {
  MK_TRY(CheckPointer(kOp, "norm_weight", p.norm_weight));
  MK_TRY(CheckPointer(kOp, "norm_bias", p.norm_bias));
  MK_TRY(CheckPointer(kOp, "weight1", p.weight1));
  MK_TRY(CheckPointer(kOp, "weight2", p.weight2));
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckRange(kOp, "rows", p.rows, 1, kMaxRows));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxChannels));
  MK_TRY(CheckRange(kOp, "hidden", p.hidden, 1, kMaxChannels));
  MK_TRY(CheckElements(kOp, "x", p.rows, p.channels));
  MK_TRY(CheckEpsilon(kOp, p.epsilon));
  MK_TRY(CheckActivation(kOp, p.activation));
  return Ok();
}

OpCost FeedForwardCost(const FeedForwardParams& p) {
  const int64_t elements = 2 * p.rows * p.channels + 2 * p.channels * p.hidden + 2 * p.channels +
                           (p.bias1 != nullptr ? p.hidden : 0) +
                           (p.bias2 != nullptr ? p.channels : 0);
  return {elements * static_cast<int64_t>(sizeof(float)), 4 * p.rows * p.channels * p.hidden};
}

int64_t FeedForwardScratchBytes(int64_t rows, int64_t channels, int64_t hidden, int64_t threads) {
  const int64_t tile_rows = EvenPiece(rows, kTileRows);
  return Lanes(rows, tile_rows, threads) * tile_rows * (channels + hidden) *
         static_cast<int64_t>(sizeof(float));
}

Status FeedForwardCpu(Context& context, const FeedForwardParams& p, Isa isa) {
  const int64_t tile_rows = EvenPiece(p.rows, kTileRows);
  const int64_t lanes = Lanes(p.rows, tile_rows, context.host().threads());
  const ScratchScope scope(context);
  MK_TRY_ASSIGN(float* const scratch,
                context.Scratch<float>(lanes * tile_rows * (p.channels + p.hidden)));
  const Status status = tile_rows == p.rows
                            ? RunWhole(context, p, isa, scratch, scratch + p.rows * p.channels)
                            : RunTiles(context, p, isa, tile_rows, lanes, scratch);
  if (status.ok()) return status;
  return {status.code(), "FeedForward: sgemm failed for rows " + std::to_string(p.rows) +
                             " channels " + std::to_string(p.channels) + " hidden " +
                             std::to_string(p.hidden)};
}

Status FeedForward(Context& context, const FeedForwardParams& params) {
  MK_TRY(CheckFeedForward(params));
  if (context.device() == DeviceKind::kCpu) return FeedForwardCpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
