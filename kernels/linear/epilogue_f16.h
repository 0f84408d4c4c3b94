// What a warp does with its sums (epilogue_f16_params.h has the formulas): device code.
//
// The sums lie scattered over the lanes as mma.sync leaves them. They go through the warp's own
// part of shared memory, as fp32, and come back as 8 consecutive columns of a row per lane: so
// operands and results move by 16 bytes, whole sectors, a lane has the same columns in every row
// (its bias stays in registers), and the four lanes of a row have its 32 columns between them. The
// loop over rows is short code, however heavy the activation.
//
// Source: ours.
#ifndef MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_F16_H_
#define MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_F16_H_

#include "kernels/device/device.h"
#include "kernels/device/memory.h"
#include "kernels/device/ptx.h"
#include "kernels/device/warp.h"
#include "kernels/linear/epilogue_f16_params.h"
#include "kernels/linear/load_f16.h"
#include "kernels/linear/matmul_f16.h"
#include "kernels/math/activation_device.h"

namespace mk {
namespace device {

inline constexpr int kLaneColumns = kChunkF16;
inline constexpr int kSlabRow = 32;  // floats: a row covers all banks

// Where 16-byte chunk `chunk` (0 to 7) of row `row` lies in the warp's slab, in floats: the four
// rows that half a warp writes at once, and the two that a quarter reads, are in different banks.
MK_DEVICE int SlabOffset(int row, int chunk) {
  return row * kSlabRow + (chunk ^ (row % 4 * 2 + row % 2)) * 4;
}

template <class Tile>
MK_DEVICE void SumsToSlab(const MatmulSums<Tile>& sums, float* slab, int lane) {
  MK_UNROLL
  for (int i = 0; i < Tile::kRowsOfFragments; ++i) {
    MK_UNROLL
    for (int j = 0; j < Tile::kColumnsOfFragments; ++j) {
      MK_UNROLL
      for (int h = 0; h < 2; ++h) {
        const int row = i * 16 + h * 8 + lane / 4;
        Store(As<Float2>(slab + SlabOffset(row, j * 2 + lane % 4 / 2) + lane % 2 * 2),
              Float2{sums[i][j][h * 2], sums[i][j][h * 2 + 1]});
      }
    }
  }
}

MK_DEVICE void SlabToLane(const float* slab, int row, int lane, float (&v)[kLaneColumns]) {
  MK_UNROLL
  for (int c = 0; c < 2; ++c) {
    const Float4 four = Load(As<Float4>(slab + SlabOffset(row, lane % 4 * 2 + c)));
    v[c * 4] = four.x, v[c * 4 + 1] = four.y, v[c * 4 + 2] = four.z, v[c * 4 + 3] = four.w;
  }
}

// The lane's columns of a vector of n, `count` of which exist; zeros without a vector.
MK_DEVICE void LoadColumns(const float* vector, mk_i64 column, int count,
                           float (&v)[kLaneColumns]) {
  MK_UNROLL
  for (int c = 0; c < kLaneColumns; ++c) {
    v[c] = vector != nullptr && c < count ? Load(vector + column + c) : 0.0f;
  }
}

struct MeanAndScale {
  float mean, rstd;
};

// Row `row` of the statistics, merged by the four lanes that share the row:
//   mean = sum_g n_g mean_g / n,  m2 = sum_g (m2_g + n_g (mean_g - mean)^2)
// All lanes of the warp take part; `inside` says whether the row exists.
MK_DEVICE MeanAndScale MergeStats(const EpilogueF16& e, mk_i64 row, bool inside, int lane) {
  const int group_columns = e.norm_groups == 1 ? static_cast<int>(e.norm_columns) : kStatsGroup;
  const RowStats* stats = e.norm_stats + row * e.norm_groups;
  const int groups = inside ? e.norm_groups : 0;
  const float inverse = 1.0f / static_cast<float>(e.norm_columns);
  const auto columns = [&](int g) {
    return static_cast<float>(
        Min<mk_i64>(e.norm_columns - static_cast<mk_i64>(g) * group_columns, group_columns));
  };
  float mean = 0.0f;
  for (int g = lane % 4; g < groups; g += 4) mean += columns(g) * Load(stats + g).mean;
  mean = WarpSum<4>(mean) * inverse;
  float m2 = 0.0f;
  for (int g = lane % 4; g < groups; g += 4) {
    const RowStats group = Load(stats + g);
    const float d = group.mean - mean;
    m2 += group.m2 + columns(g) * d * d;
  }
  m2 = WarpSum<4>(m2) * inverse;
  return {mean, 1.0f / Sqrt(m2 + e.norm_epsilon)};
}

// (mean, m2) of the row's `row_columns` columns that its four lanes have between them.
MK_DEVICE void StoreStats(RowStats* to, const float (&v)[kLaneColumns], int count, int row_columns,
                          bool inside, int lane) {
  float sum = 0.0f;
  MK_UNROLL
  for (int c = 0; c < kLaneColumns; ++c) sum += c < count ? v[c] : 0.0f;
  const float mean = WarpSum<4>(sum) / static_cast<float>(row_columns);
  float m2 = 0.0f;
  MK_UNROLL
  for (int c = 0; c < kLaneColumns; ++c) {
    const float d = c < count ? v[c] - mean : 0.0f;
    m2 += d * d;
  }
  m2 = WarpSum<4>(m2);
  if (inside && lane % 4 == 0) Store(to, RowStats{mean, m2});
}

MK_DEVICE void AddResidual(const half* from, int count, bool by_chunks, float (&v)[kLaneColumns]) {
  const Words4 words =
      by_chunks && count == kLaneColumns ? Load(As<Words4>(from)) : LoadHalves(from, count);
  MK_UNROLL
  for (int c = 0; c < kLaneColumns; ++c) {
    v[c] += HalfOf(words, c);
  }
}

// Rounds v to what was stored.
MK_DEVICE void StoreHalves(half* to, int count, bool by_chunks, float (&v)[kLaneColumns]) {
  Words4 words;
  MK_UNROLL
  for (int c = 0; c < kLaneColumns; c += 2) words.word[c / 2] = PackHalf2(v[c], v[c + 1]);
  MK_UNROLL
  for (int c = 0; c < kLaneColumns; ++c) {
    v[c] = HalfOf(words, c);
  }
  if (by_chunks && count == kLaneColumns) {
    Store(As<Words4>(to), words);
    return;
  }
  MK_UNROLL
  for (int c = 0; c < kLaneColumns; ++c) {
    if (c < count) Store(to + c, half{static_cast<mk_u16>(words.word[c / 2] >> (c % 2 * 16))});
  }
}

MK_DEVICE void StoreFloats(float* to, int count, bool by_chunks, const float (&v)[kLaneColumns]) {
  if (by_chunks && count == kLaneColumns) {
    Store(As<Float4>(to), Float4{v[0], v[1], v[2], v[3]});
    Store(As<Float4>(to + 4), Float4{v[4], v[5], v[6], v[7]});
    return;
  }
  MK_UNROLL
  for (int c = 0; c < kLaneColumns; ++c) {
    if (c < count) Store(to + c, v[c]);
  }
}

// The warp's kWarpM rows of 32 columns from (row0, column0) on, of y of m x n. `slab` is the warp's
// own, kWarpM * 32 floats.
template <class Tile>
MK_DEVICE void Finish(const EpilogueF16& e, mk_i64 m, mk_i64 n, const MatmulSums<Tile>& sums,
                      float* slab, mk_i64 row0, mk_i64 column0, int lane) {
  SumsToSlab<Tile>(sums, slab, lane);
  SyncWarp();  // rows come back from other lanes than wrote them

  const mk_i64 column = column0 + lane % 4 * kLaneColumns;
  const int count = static_cast<int>(Max<mk_i64>(0, Min<mk_i64>(n - column, kLaneColumns)));
  const bool y_chunks = e.y != nullptr ? MovesByChunks(e.y, n) : MovesByChunks(e.y_fp32, n);
  const bool residual_chunks = MovesByChunks(e.residual, n);
  float bias[kLaneColumns], norm_sums[kLaneColumns];
  LoadColumns(e.bias, column, count, bias);
  LoadColumns(e.norm_sums, column, count, norm_sums);

  MK_NO_UNROLL
  for (int r = lane / 4; r < Tile::kWarpM; r += 8) {
    const mk_i64 row = row0 + r, at = row * n + column;
    const bool inside = row < m;
    const int columns = inside ? count : 0;
    float v[kLaneColumns];
    SlabToLane(slab, r, lane, v);
    if (e.norm_sums != nullptr) {
      const MeanAndScale norm = MergeStats(e, row, inside, lane);
      MK_UNROLL
      for (int c = 0; c < kLaneColumns; ++c) {
        v[c] = norm.rstd * Fma(-norm.mean, norm_sums[c], v[c]);
      }
    }
    MK_UNROLL
    for (int c = 0; c < kLaneColumns; ++c) v[c] = Fma(e.scale, v[c], bias[c]);
    Activate(e.activation, v);
    if (e.residual != nullptr) AddResidual(e.residual + at, columns, residual_chunks, v);
    if (e.y != nullptr) {
      StoreHalves(e.y + at, columns, y_chunks, v);
    } else {
      StoreFloats(e.y_fp32 + at, columns, y_chunks, v);
    }
    if (e.y_stats != nullptr && column0 < n) {
      const int row_columns = static_cast<int>(Min<mk_i64>(n - column0, kStatsGroup));
      StoreStats(e.y_stats + row * CeilDiv<mk_i64>(n, kStatsGroup) + column0 / kStatsGroup, v,
                 count, row_columns, inside, lane);
    }
  }
}

}  // namespace device
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_LINEAR_EPILOGUE_F16_H_
