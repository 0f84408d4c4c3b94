#include "kernels/linear/feed_forward.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <string>

#include "kernels/linear/epilogue.h"
#include "kernels/math/activation.h"
#include "kernels/norm/layer_norm_simd.h"

namespace mk {
namespace {

constexpr char kOp[] = "FeedForward";
constexpr int64_t kMaxRows = INT32_MAX;
constexpr int64_t kMaxChannels = int64_t{1} << 20;

// Rows of a tile: tall enough that the library's packing of the two weights is spread over them,
// and no taller, so that the hidden layer stays near. The weights are packed anew for each tile,
// which costs the more the wider they are.
constexpr int64_t kTileBytes = 1 << 20;
constexpr int64_t kMinTileRows = 128;

int64_t TileRows(int64_t rows, int64_t hidden) {
  const int64_t fitting = kTileBytes / (hidden * static_cast<int64_t>(sizeof(float)));
  const int64_t most = std::max(kMinTileRows, fitting);
  const int64_t tiles = CeilDiv(rows, most);
  return CeilDiv(rows, tiles);  // even ones, rather than a last one of a few rows
}

int64_t Lanes(int64_t rows, int64_t tile_rows, int64_t threads) {
  return std::min({threads, CeilDiv(rows, tile_rows), kMaxScratchThreads});
}

mk_sgemm_args Product(const float* a, const float* weight, float* c, int64_t m, int64_t n,
                      int64_t k, float beta) {
  mk_sgemm_args gemm = {};
  gemm.transpose_b = 1;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.alpha = 1.0f;
  gemm.beta = beta;
  gemm.a = a;
  gemm.lda = k;
  gemm.b = weight;
  gemm.ldb = k;
  gemm.c = c;
  gemm.ldc = n;
  return gemm;
}

// Rows [begin, begin + rows) with `normed` of rows x channels and `hidden` of rows x hidden.
Status RunTile(Context& context, const FeedForwardParams& p, Isa isa, int64_t begin, int64_t rows,
               float* normed, float* hidden) {
  float* x = p.x + begin * p.channels;
  const LayerNormParams norm = {x,    p.norm_weight, p.norm_bias, normed,
                                rows, p.channels,    p.epsilon,   Activation::kNone};
  MK_SIMD_PICK(isa, NormRows)(norm, 0, rows);
  MK_TRY(context.Sgemm(Product(normed, p.weight1, hidden, rows, p.hidden, p.channels, 0.0f)));
  MK_SIMD_PICK(isa, Epilogue)({hidden, p.bias1, nullptr, rows, p.hidden, p.activation});
  MK_TRY(context.Sgemm(Product(hidden, p.weight2, x, rows, p.channels, p.hidden, 1.0f)));
  MK_SIMD_PICK(isa, Epilogue)({x, p.bias2, nullptr, rows, p.channels, Activation::kNone});
  return Ok();
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
  if (!(p.epsilon >= 0.0f) || std::isinf(p.epsilon)) {
    return InvalidArgument("FeedForward: epsilon " + std::to_string(p.epsilon) +
                           " is not finite and >= 0");
  }
  if (!IsActivation(p.activation)) {
    return InvalidArgument("FeedForward: activation " +
                           std::to_string(static_cast<mk_u32>(p.activation)) + " is unknown");
  }
  return Ok();
}

OpCost FeedForwardCost(const FeedForwardParams& p) {
  const int64_t elements = 2 * p.rows * p.channels + 2 * p.channels * p.hidden + 2 * p.channels +
                           (p.bias1 != nullptr ? p.hidden : 0) +
                           (p.bias2 != nullptr ? p.channels : 0);
  return {elements * static_cast<int64_t>(sizeof(float)), 4 * p.rows * p.channels * p.hidden};
}

int64_t FeedForwardScratchBytes(int64_t rows, int64_t channels, int64_t hidden, int64_t threads) {
  const int64_t tile_rows = TileRows(rows, hidden);
  return Lanes(rows, tile_rows, threads) * tile_rows * (channels + hidden) *
         static_cast<int64_t>(sizeof(float));
}

Status FeedForwardCpu(Context& context, const FeedForwardParams& p, Isa isa) {
  const int64_t tile_rows = TileRows(p.rows, p.hidden);
  const int64_t tiles = CeilDiv(p.rows, tile_rows);
  const int64_t worth = std::max<int64_t>(1, 2 * p.rows * p.channels * p.hidden / kMinRangeMacs);
  const int64_t lanes = std::min(Lanes(p.rows, tile_rows, context.host().threads()), worth);
  const int64_t tile_floats = tile_rows * (p.channels + p.hidden);

  const ScratchScope scope(context);
  MK_TRY_ASSIGN(float* const scratch, context.Scratch<float>(lanes * tile_floats));
  std::atomic<int64_t> next{0};
  std::atomic<mk_status> failure{MK_OK};
  // Each lane owns a tile's scratch and takes tiles as they come. Relaxed: tiles are disjoint, and
  // ParallelFor's return publishes what was done.
  context.ParallelFor(lanes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; ++lane) {
      float* const normed = scratch + lane * tile_floats;
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tiles;) {
        const int64_t row = i * tile_rows;
        const Status status = RunTile(context, p, isa, row, std::min(tile_rows, p.rows - row),
                                      normed, normed + tile_rows * p.channels);
        if (!status.ok()) failure.store(status.code(), std::memory_order_relaxed);
      }
    }
  });
  const mk_status code = failure.load(std::memory_order_relaxed);
  if (code == MK_OK) return Ok();
  return {code, "FeedForward: sgemm failed for rows " + std::to_string(p.rows) + " channels " +
                    std::to_string(p.channels) + " hidden " + std::to_string(p.hidden)};
}

Status FeedForward(Context& context, const FeedForwardParams& params) {
  MK_TRY(CheckFeedForward(params));
  if (context.device() == DeviceKind::kCpu) return FeedForwardCpu(context, params);
  return NotOnDevice(kOp, context.device());
}

}  // namespace mk
