// How a product is cut. What is computed is tested by its users.
#include "kernels/linear/product.h"

#include <gtest/gtest.h>

#include <vector>

namespace mk {
namespace {

struct Sizes {
  int64_t m, n, k;
};

TEST(ProductTiles, CoverEveryOutputOnce) {
  for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{384, 33, 5}, Sizes{385, 33, 5}, Sizes{3136, 96, 384},
                         Sizes{49, 3072, 768}, Sizes{101, 333, 515}, Sizes{1, 1000, 768},
                         Sizes{1537, 7, 9}, Sizes{200, 65, 4096}}) {
    std::vector<int> seen(static_cast<size_t>(s.m * s.n));
    const ProductTiles tiles(s.m, s.n, s.k);
    for (int64_t i = 0; i < tiles.count(); ++i) {
      const ProductTile tile = tiles[i];
      ASSERT_GE(tile.rows, 1);
      ASSERT_GE(tile.columns, 1);
      for (int64_t r = tile.row; r < tile.row + tile.rows; ++r) {
        for (int64_t c = tile.column; c < tile.column + tile.columns; ++c) ++seen[r * s.n + c];
      }
    }
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << s.m << " x " << s.n << " x " << s.k;
  }
}

TEST(ProductTiles, ManyRowsAreCutByRowsAndFewByColumns) {
  EXPECT_EQ(ProductTiles(3136, 384, 96).count(), 12);
  EXPECT_EQ(ProductTiles(3136, 384, 96)[0].columns, 384);
  EXPECT_EQ(ProductTiles(49, 3072, 768).count(), 8);
  EXPECT_EQ(ProductTiles(49, 3072, 768)[0].rows, 49);
  EXPECT_EQ(ProductTiles(49, 3072, 768)[0].columns, 384);
  EXPECT_EQ(ProductTiles(64, 48, 12).count(), 1);  // too little to be worth a cut
}

TEST(EvenPiece, MakesOneOrAMultipleOfFour) {
  EXPECT_EQ(EvenPiece(1, 384), 1);
  EXPECT_EQ(EvenPiece(384, 384), 384);
  EXPECT_EQ(EvenPiece(385, 384), 97);
  EXPECT_EQ(EvenPiece(784, 384), 196);
  EXPECT_EQ(EvenPiece(3136, 384), 262);
}

}  // namespace
}  // namespace mk
