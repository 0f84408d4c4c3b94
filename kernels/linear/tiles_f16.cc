#include "kernels/linear/tiles_f16.h"

#include <algorithm>

namespace mk {
namespace {

// Multiply-adds a cycle that an SM of sm_80's kind does at best on tensor cores, fp16 into fp32.
constexpr double kMacsPerCycle = 1024;
// The share of it that a tile reaches with enough warps: what it loads for each multiply-add grows
// as the tile shrinks. Estimates.
constexpr double kRate[kTileCountF16] = {0.85, 0.80, 0.80, 0.70, 0.58};
// Warps of an SM at a time from which latency is hidden, with the loads of several stages under
// way. Estimate.
constexpr double kEnoughWarps = 8;

// Multiply-adds a cycle of an SM that holds `blocks` of `tile`.
double Rate(const TileF16& tile, double rate, mk_i64 blocks) {
  const auto warps = static_cast<double>(blocks * tile.warps_m * tile.warps_n);
  return kMacsPerCycle * rate * std::min(1.0, (warps + 4) / (kEnoughWarps + 4));
}

}  // namespace

double TileTimeF16(const TileF16& tile, mk_i64 m, mk_i64 n, mk_i32 sms) {
  double rate = kRate[kTileCountF16 - 1];
  for (int i = 0; i < kTileCountF16; ++i) {
    if (kTilesF16[i].m == tile.m && kTilesF16[i].n == tile.n) rate = kRate[i];
  }
  const mk_i64 most = (TileBlocksF16(tile, m, n) + sms - 1) / sms;  // of any SM
  const mk_i64 full = most / tile.blocks_per_sm, rest = most % tile.blocks_per_sm;
  const double macs = static_cast<double>(tile.m) * tile.n;
  double time =
      static_cast<double>(full * tile.blocks_per_sm) * macs / Rate(tile, rate, tile.blocks_per_sm);
  if (rest > 0) time += static_cast<double>(rest) * macs / Rate(tile, rate, rest);
  return time;
}

TileIndexF16 ChooseTileF16(mk_i64 m, mk_i64 n, mk_i32 sms) {
  int best = 0;
  for (int i = 1; i < kTileCountF16; ++i) {
    if (TileTimeF16(kTilesF16[i], m, n, sms) < TileTimeF16(kTilesF16[best], m, n, sms)) best = i;
  }
  return static_cast<TileIndexF16>(best);
}

}  // namespace mk
