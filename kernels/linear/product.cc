#include "kernels/linear/product.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/linear/epilogue.h"
#include "kernels/op.h"

namespace mk {
namespace {

// Rows of a tile: tall enough that the library's packing of b, which it does anew for each, is
// spread over them; no taller, so that what a tile makes is still near when the epilogue reads it.
constexpr int64_t kTileRows = 384;
// Products of fewer rows are cut by columns, each packing its own part of b; not finer than this,
// for each packs all of a.
constexpr int64_t kTileMacs = int64_t{1} << 24;
constexpr int64_t kColumnMultiple = 32;
constexpr int64_t kMaxColumnTiles = 16;

}  // namespace

int64_t EvenPiece(int64_t items, int64_t most) {
  int64_t pieces = CeilDiv(items, most);
  if (pieces > 1) pieces = CeilDiv(pieces, 4) * 4;
  return CeilDiv(items, pieces);
}

ProductTiles::ProductTiles(int64_t m, int64_t n, int64_t k) : m_(m), n_(n) {
  by_row_ = m > kTileRows;
  if (by_row_) {
    size_ = EvenPiece(m, kTileRows);
    count_ = CeilDiv(m, size_);
    return;
  }
  int64_t pieces = 1;
  while (pieces < kMaxColumnTiles && pieces * kTileMacs < m * n * k) pieces *= 2;
  size_ = CeilDiv(CeilDiv(n, pieces), kColumnMultiple) * kColumnMultiple;
  count_ = CeilDiv(n, size_);
}

ProductTile ProductTiles::operator[](int64_t i) const {
  const int64_t first = i * size_;
  if (by_row_) return {first, std::min(size_, m_ - first), 0, n_};
  return {0, m_, first, std::min(size_, n_ - first)};
}

Status RunTile(Context& context, const Product& p, const ProductTile& tile, Isa isa) {
  const int64_t offset = tile.row * p.n + tile.column;
  float* y = p.y + offset;
  const float* residual = p.residual != nullptr ? p.residual + offset : nullptr;
  mk_sgemm_args gemm = {};
  gemm.transpose_b = p.b_transposed ? 1 : 0;
  gemm.m = tile.rows;
  gemm.n = tile.columns;
  gemm.k = p.k;
  gemm.alpha = 1.0f;
  gemm.a = p.a + tile.row * p.k;
  gemm.lda = p.k;
  gemm.b = p.b + (p.b_transposed ? tile.column * p.k : tile.column);
  gemm.ldb = p.b_transposed ? p.k : p.n;
  gemm.c = y;
  gemm.ldc = p.n;
  if (residual != nullptr && p.activation == Activation::kNone) {
    // Without an activation between them the sum may start from the residual: one pass less, and
    // the product may run in place.
    for (int64_t row = 0; residual != y && row < tile.rows; ++row) {
      std::memcpy(y + row * p.n, residual + row * p.n,
                  static_cast<size_t>(tile.columns) * sizeof(float));
    }
    gemm.beta = 1.0f;
    residual = nullptr;
  }
  MK_TRY(context.Sgemm(gemm));
  const float* bias = p.bias != nullptr ? p.bias + tile.column : nullptr;
  MK_SIMD_PICK(isa, Epilogue)
  ({y, bias, residual, tile.rows, tile.columns, p.n, p.activation});
  return Ok();
}

Status RunProduct(Context& context, const Product& p, Isa isa) {
  const ProductTiles tiles(p.m, p.n, p.k);
  const int64_t macs = std::max<int64_t>(1, p.m * p.n * p.k / tiles.count());
  std::atomic<mk_status> failure{MK_OK};
  context.ParallelFor(tiles.count(), CeilDiv(kMinRangeMacs, macs), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Status status = RunTile(context, p, tiles[i], isa);
      // Relaxed: ParallelFor's return publishes it.
      if (!status.ok()) failure.store(status.code(), std::memory_order_relaxed);
    }
  });
  const mk_status code = failure.load(std::memory_order_relaxed);
  return code == MK_OK ? Ok() : Status(code, "");
}

}  // namespace mk
