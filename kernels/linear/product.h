// The matrix product inside Linear, FeedForward and Conv3x3, with what follows it on each tile:
//
//   y[i, j] = act(sum_p a[i, p] b[p, j] + bias[j]) + residual[i, j]
//
// It is cut into tiles that depend on its sizes alone and never on the number of threads: the SGEMM
// library adds in another order at the edge of a call than inside, so that other tiles would be
// other results. Source: ours.
#ifndef MERGEKERNEL_KERNELS_LINEAR_PRODUCT_H_
#define MERGEKERNEL_KERNELS_LINEAR_PRODUCT_H_

#include <cstdint>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/math/activation_params.h"
#include "kernels/simd/isa.h"

namespace mk {

// All fp32 and dense. y overlaps a and b nowhere.
struct Product {
  const float* a;  // [m, k]
  const float* b;  // [n, k] where transposed, else [k, n]
  bool b_transposed;
  const float* bias;      // [n]; null: none
  const float* residual;  // [m, n]; null: none; may be y when activation is none
  float* y;               // [m, n]
  int64_t m;
  int64_t n;
  int64_t k;
  Activation activation;
};

// Rows [row, row + rows) and columns [column, column + columns) of y.
struct ProductTile {
  int64_t row, rows, column, columns;
};

// The tiles of a product, in the order of their numbers: by rows where there are many, else by
// columns. Pure.
class ProductTiles {
 public:
  ProductTiles(int64_t m, int64_t n, int64_t k);
  int64_t count() const { return count_; }
  ProductTile operator[](int64_t i) const;

 private:
  int64_t m_, n_;
  int64_t size_;  // rows or columns of a tile
  int64_t count_;
  bool by_row_;
};

// `items` in even pieces of at most `most`; more than one piece: a multiple of four, so that two,
// three and four threads have as many each. The size of a piece.
int64_t EvenPiece(int64_t items, int64_t most);

// One tile on the calling thread. A failure is the SGEMM's.
Status RunTile(Context& context, const Product& product, const ProductTile& tile, Isa isa);

// All tiles on the host's threads; blocks until done. The first failure's code, without a message.
Status RunProduct(Context& context, const Product& product, Isa isa);

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_PRODUCT_H_
