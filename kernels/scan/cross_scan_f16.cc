#include "kernels/scan/cross_scan_f16.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/convert.h"

namespace mk {
namespace {

using device::half;

constexpr char kOp[] = "CrossScanF16";
constexpr int64_t kDirections = 4;
constexpr int64_t kSlice = 32;     // channels of a warp
constexpr int64_t kRankStep = 16;  // of an mma
constexpr int64_t kChunk = 8;      // tokens
constexpr int64_t kMaxSide = int64_t{1} << 16;
constexpr int64_t kMaxTokens = int64_t{1} << 24;
constexpr int64_t kMaxRow = int64_t{1} << 28;  // 8 rows of the map are within 32 bits
constexpr int64_t kMaxRank = int64_t{1} << 12;
constexpr int64_t kMaxState = 32;
constexpr uint32_t kCarryThreads = 512;
constexpr int64_t kFloat = sizeof(float);

// Tiles are cut smaller where fewer blocks than the least of the boards has SMs would work, at a
// map whose work is worth two more launches.
constexpr int64_t kLeastBlocks = 8;
constexpr int64_t kSmallWork = int64_t{1} << 16;  // tokens x channels

int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

int64_t Tokens(const CrossScanF16Params& p) { return int64_t{p.height} * p.width; }
int64_t Fields(const CrossScanF16Params& p) { return p.rank + 2 * int64_t{p.state}; }

// The side of a tile of `size` tokens' way, cut into as few pieces of at most `side` as can be; of
// several the first ones are whole chunks.
int64_t TileSide(int64_t size, int64_t side) {
  const int64_t pieces = CeilDiv(size, side);
  return pieces == 1 ? size : RoundUp(CeilDiv(size, pieces), kChunk);
}

// More states take more shared memory for each thread and line.
int64_t MostSide(int64_t state) { return state == 1 ? 32 : state <= 16 ? 16 : 8; }
int64_t MostWarps(int64_t state) { return state == 1 ? 32 : state <= 16 ? 16 : 8; }

void CutTiles(const CrossScanF16Params& p, int64_t side, CrossScanF16Plan& plan) {
  plan.tile_rows = TileSide(p.height, side);
  plan.tile_cols = TileSide(p.width, side);
  plan.tiles_down = CeilDiv(p.height, plan.tile_rows);
  plan.tiles_across = CeilDiv(p.width, plan.tile_cols);
}

LaunchCost WalkCost(const CrossScanF16Params& p, uint64_t walks) {
  const int64_t elements = kDirections * Tokens(p) * p.channels;
  const int64_t weights = kDirections * (PackedDtWeightElements(p.channels, p.rank) / 4 *
                                             static_cast<int64_t>(sizeof(half)) +
                                         (1 + p.state) * p.channels * kFloat);
  const int64_t map = Tokens(p) * (p.channels + kDirections * Fields(p));
  return {static_cast<uint64_t>(map * static_cast<int64_t>(sizeof(half)) + weights),
          walks * static_cast<uint64_t>(elements * (5 * p.state + 9)),
          walks * static_cast<uint64_t>(elements * 2 * p.rank)};
}

// `floats` for each segment of each direction and channel.
uint64_t SegmentBytes(const CrossScanF16Params& p, const CrossScanF16Plan& plan, int64_t floats) {
  return static_cast<uint64_t>(2 * (plan.row_segments + plan.column_segments) * floats *
                               p.channels * kFloat);
}

LaunchCost EndsCost(const CrossScanF16Params& p, const CrossScanF16Plan& plan) {
  LaunchCost cost = WalkCost(p, 1);
  cost.bytes += SegmentBytes(p, plan, 1 + p.state);
  return cost;
}

LaunchCost CarryCost(const CrossScanF16Params& p, const CrossScanF16Plan& plan) {
  const uint64_t bytes = SegmentBytes(p, plan, 1 + 2 * p.state) +
                         static_cast<uint64_t>(kDirections * p.state * p.channels * kFloat);
  return {bytes, SegmentBytes(p, plan, p.state), 0};  // 4 FLOP for each state of 4 bytes
}

LaunchCost OutputCost(const CrossScanF16Params& p, const CrossScanF16Plan& plan) {
  LaunchCost cost = WalkCost(p, plan.alone ? 2 : 1);
  if (!plan.alone) cost.bytes += SegmentBytes(p, plan, p.state);
  const int64_t elements = Tokens(p) * p.channels;
  const int64_t maps = p.gate != nullptr ? 2 : 1;
  const int64_t vectors = p.norm_weight != nullptr ? 3 : 1;
  cost.bytes += static_cast<uint64_t>(maps * elements * static_cast<int64_t>(sizeof(half)) +
                                      vectors * p.channels * kFloat);
  cost.flops += static_cast<uint64_t>(elements * (p.norm_weight != nullptr ? 10 : 2));
  return cost;
}

constexpr uint64_t kClearBytes = sizeof(mk_u32);

// What the launches share.
CrossScanF16Launch LaunchOf(const CrossScanF16Params& p, const CrossScanF16Plan& plan) {
  CrossScanF16Launch launch = {};
  launch.p = p;
  launch.tile_rows = static_cast<mk_i32>(plan.tile_rows);
  launch.tile_cols = static_cast<mk_i32>(plan.tile_cols);
  launch.tiles_across = static_cast<mk_i32>(plan.tiles_across);
  launch.tiles_down = static_cast<mk_i32>(plan.tiles_down);
  launch.segments = static_cast<mk_i32>(std::max(plan.row_segments, plan.column_segments));
  launch.slices_per_block = static_cast<mk_i32>(plan.slices_per_block);
  launch.slice_blocks = static_cast<mk_i32>(plan.slice_blocks);
  return launch;
}

int64_t SumsFloats(const CrossScanF16Params& p, const CrossScanF16Plan& plan) {
  return plan.alone ? 0
                    : kDirections * std::max(plan.row_segments, plan.column_segments) * p.channels;
}

}  // namespace

Result<CrossScanF16Kernels> CrossScanF16Kernels::Load(const Host& host,
                                                      const DeviceModule& module) {
  MK_TRY_ASSIGN(mk_module* const loaded, host.LoadModule(module));
  CrossScanF16Kernels k;
  const auto find = [&](const char* name) {
    return host.FindKernel<CrossScanF16Launch>(loaded, name);
  };
  MK_TRY_ASSIGN(k.one_ends, find("mk_cross_scan_f16_one_ends"));
  MK_TRY_ASSIGN(k.one_output, find("mk_cross_scan_f16_one_output"));
  MK_TRY_ASSIGN(k.many_ends, find("mk_cross_scan_f16_many_ends"));
  MK_TRY_ASSIGN(k.many_output, find("mk_cross_scan_f16_many_output"));
  MK_TRY_ASSIGN(k.carry, find("mk_cross_scan_f16_carry"));
  MK_TRY_ASSIGN(k.clear, find("mk_cross_scan_f16_clear"));
  return k;
}

int64_t PackedDtWeightElements(int64_t channels, int64_t rank) {
  return kDirections * RoundUp(channels, kSlice) * RoundUp(rank, kRankStep);
}

void PackDtWeight(const float* dt_weight, int64_t channels, int64_t rank, half* packed) {
  const int64_t slices = CeilDiv(channels, kSlice);
  const int64_t parts = CeilDiv(rank, kRankStep);
  for (int64_t index = 0; index < PackedDtWeightElements(channels, rank); ++index) {
    const int64_t e = index % 8, lane = index / 8 % 32, m = index / 256 % 2;
    const int64_t part = index / 512 % parts, slice = index / 512 / parts % slices;
    const int64_t k = index / 512 / parts / slices;
    const int64_t c = slice * kSlice + m * 16 + lane / 4 + e / 2 % 2 * 8;
    const int64_t r = part * kRankStep + lane % 4 * 2 + e % 2 + e / 4 * 8;
    const bool inside = c < channels && r < rank;
    packed[index].bits =
        device::FloatToHalfBits(inside ? dt_weight[(k * rank + r) * channels + c] : 0.0f);
  }
}

Status CheckCrossScanF16(const CrossScanF16Params& p) {
  MK_TRY(CheckPointer(kOp, "x", p.x));
  MK_TRY(CheckPointer(kOp, "projected", p.projected));
  MK_TRY(CheckPointer(kOp, "dt_weight", p.dt_weight));
  MK_TRY(CheckPointer(kOp, "dt_bias", p.dt_bias));
  MK_TRY(CheckPointer(kOp, "a", p.a));
  MK_TRY(CheckPointer(kOp, "d", p.d));
  MK_TRY(CheckPointer(kOp, "y", p.y));
  const std::string op = kOp;
  if ((p.norm_weight == nullptr) != (p.norm_bias == nullptr)) {
    return InvalidArgument(op + (p.norm_bias == nullptr
                                     ? ": a norm_weight, but norm_bias is null"
                                     : ": a norm_bias, but norm_weight is null"));
  }
  if (p.gate != nullptr && p.norm_weight == nullptr) {
    return InvalidArgument(op + ": a gate, but no norm");
  }
  MK_TRY(CheckRange(kOp, "height", p.height, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "width", p.width, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "tokens", Tokens(p), 1, kMaxTokens));
  MK_TRY(CheckRange(kOp, "channels", p.channels, 1, kMaxSide));
  MK_TRY(CheckRange(kOp, "width x channels", int64_t{p.width} * p.channels, 1, kMaxRow));
  MK_TRY(CheckRange(kOp, "rank", p.rank, 1, kMaxRank));
  MK_TRY(CheckRange(kOp, "state", p.state, 1, kMaxState));
  MK_TRY(CheckEpsilon(kOp, p.epsilon));
  if (!IsAligned(p.dt_weight, 16)) {
    return InvalidArgument(op + ": dt_weight is not aligned to 16 bytes");
  }
  if (!IsAligned(p.projected, 4) || !IsAligned(p.y, 4) || !IsAligned(p.gate, 4)) {
    return InvalidArgument(op + ": projected, y or gate is not aligned to 4 bytes");
  }
  if (p.x == p.y) return InvalidArgument(op + ": y is x");
  if (p.gate == p.y) return InvalidArgument(op + ": y is gate");
  return Ok();
}

CrossScanF16Plan PlanCrossScanF16(const CrossScanF16Params& p) {
  CrossScanF16Plan plan = {};
  plan.slices = CeilDiv(p.channels, kSlice);
  int64_t side = MostSide(p.state);
  CutTiles(p, side, plan);
  const bool small = Tokens(p) * p.channels <= kSmallWork;
  while (!small && side > 16 && plan.tiles_down * plan.tiles_across * plan.slices < kLeastBlocks) {
    side /= 2;
    CutTiles(p, side, plan);
  }
  plan.lines = std::max(plan.tile_rows, plan.tile_cols);
  // All channels in one block where they fit; else no block of fewer than 8 warps.
  plan.slices_per_block = plan.lines * plan.slices <= MostWarps(p.state)
                              ? plan.slices
                              : std::clamp<int64_t>(8 / plan.lines, 1, plan.slices);
  plan.slice_blocks = CeilDiv(plan.slices, plan.slices_per_block);
  plan.row_segments = p.height * plan.tiles_across;
  plan.column_segments = p.width * plan.tiles_down;
  plan.threads = static_cast<uint32_t>(32 * plan.lines * plan.slices_per_block);
  const int64_t states = p.state == 1 ? 0 : p.state * int64_t{plan.threads};
  const int64_t sums = plan.slices_per_block * plan.tile_rows * plan.tile_cols * kSlice;
  plan.alone = p.state == 1 && plan.tiles_down * plan.tiles_across == 1;
  const int64_t ends = plan.alone ? plan.slices_per_block * 2 * plan.lines * 2 * kSlice : 0;
  plan.ends_shared_bytes = static_cast<uint32_t>(states * kFloat);
  plan.output_shared_bytes = static_cast<uint32_t>((sums + ends + states) * kFloat);
  plan.tickets = p.norm_weight != nullptr && plan.slice_blocks > 1;
  plan.launches = plan.alone ? (plan.tickets ? 2 : 1) : 3;
  return plan;
}

LaunchCost CrossScanF16Cost(const CrossScanF16Params& p) {
  const CrossScanF16Plan plan = PlanCrossScanF16(p);
  LaunchCost cost = OutputCost(p, plan);
  const auto add = [&](const LaunchCost& other) {
    cost.bytes += other.bytes;
    cost.flops += other.flops;
    cost.tensor_flops += other.tensor_flops;
  };
  if (!plan.alone) {
    add(EndsCost(p, plan));
    add(CarryCost(p, plan));
  } else if (plan.tickets) {
    add({kClearBytes, 0, 0});
  }
  return cost;
}

int64_t CrossScanF16Scratch(const CrossScanF16Params& p) {
  const CrossScanF16Plan plan = PlanCrossScanF16(p);
  const int64_t floats = SumsFloats(p, plan);
  const int64_t tickets = plan.tickets ? plan.tiles_down * plan.tiles_across : 0;
  return RoundUp(floats * kFloat, 64) + RoundUp(floats * p.state * kFloat, 64) +
         RoundUp(tickets * static_cast<int64_t>(sizeof(mk_u32)), 64);
}

Status CrossScanF16(Context& context, const CrossScanF16Kernels& kernels,
                    const CrossScanF16Params& params) {
  MK_TRY(CheckCrossScanF16(params));
  const CrossScanF16Plan plan = PlanCrossScanF16(params);
  CrossScanF16Launch launch = LaunchOf(params, plan);
  const ScratchScope scope(context);
  const auto tiles = static_cast<uint32_t>(plan.tiles_down * plan.tiles_across);
  const Dim3 grid = {tiles, static_cast<uint32_t>(plan.slice_blocks)};
  const bool one = params.state == 1;
  if (plan.tickets) {
    MK_TRY_ASSIGN(launch.tickets, context.Scratch<mk_u32>(tiles));
  }
  if (!plan.alone) {
    const int64_t floats = SumsFloats(params, plan);
    MK_TRY_ASSIGN(launch.sums, context.Scratch<float>(floats));
    MK_TRY_ASSIGN(launch.states, context.Scratch<float>(floats * params.state));
    MK_TRY(context.Launch(one ? kernels.one_ends : kernels.many_ends, grid, {plan.threads},
                          plan.ends_shared_bytes, launch, EndsCost(params, plan)));
    const Dim3 carry = {static_cast<uint32_t>(plan.slices), static_cast<uint32_t>(kDirections),
                        static_cast<uint32_t>(params.state)};
    MK_TRY(
        context.Launch(kernels.carry, carry, {kCarryThreads}, 0, launch, CarryCost(params, plan)));
  } else if (plan.tickets) {
    MK_TRY(context.Launch(kernels.clear, {1}, {64}, 0, launch, {kClearBytes, 0, 0}));
  }
  const int64_t sums = plan.slices_per_block * plan.tile_rows * plan.tile_cols * kSlice;
  launch.ends_at = static_cast<mk_i32>(sums);
  launch.states_at = static_cast<mk_i32>((plan.output_shared_bytes - plan.ends_shared_bytes) /
                                         static_cast<uint32_t>(kFloat));
  return context.Launch(one ? kernels.one_output : kernels.many_output, grid, {plan.threads},
                        plan.output_shared_bytes, launch, OutputCost(params, plan));
}

// ---- The twin

namespace {

double Read(half h) { return device::HalfBitsToFloat(h.bits); }
half Rounded(double v) { return {device::FloatToHalfBits(static_cast<float>(v))}; }

// W[c][r] of direction k: see PackDtWeight.
double DtWeight(const CrossScanF16Params& p, int64_t k, int64_t c, int64_t r) {
  const int64_t slices = CeilDiv(p.channels, kSlice);
  const int64_t parts = CeilDiv(p.rank, kRankStep);
  const int64_t lane = c % 8 * 4 + r % 8 / 2;
  const int64_t e = r % 2 + c / 8 % 2 * 2 + r / 8 % 2 * 4;
  const int64_t row = ((k * slices + c / kSlice) * parts + r / kRankStep) * 2 + c / 16 % 2;
  return Read(p.dt_weight[(row * 32 + lane) * 8 + e]);
}

// Adds direction k of channel c to sums [L].
void ScanChannel(const CrossScanF16Params& p, int64_t k, int64_t c, std::vector<double>& sums) {
  const int64_t tokens = Tokens(p);
  std::vector<double> h(static_cast<size_t>(p.state));
  for (int64_t i = 0; i < tokens; ++i) {
    const int64_t u = k < 2 ? i : tokens - 1 - i;
    const int64_t t = k % 2 == 0 ? u : u % p.height * p.width + u / p.height;
    const half* const fields = p.projected + (t * kDirections + k) * Fields(p);
    double dt = p.dt_bias[k * p.channels + c];
    for (int64_t r = 0; r < p.rank; ++r) dt += Read(fields[r]) * DtWeight(p, k, c, r);
    const double step = dt > 20 ? dt : std::log1p(std::exp(dt));
    for (int64_t n = 0; n < p.state; ++n) {
      const double a = p.a[(k * p.state + n) * p.channels + c];
      h[n] = std::exp(step * a) * h[n] +
             step * Read(fields[p.rank + n]) * Read(p.x[t * p.channels + c]);
      sums[t] += Read(fields[p.rank + p.state + n]) * h[n];
    }
  }
}

void NormToken(const CrossScanF16Params& p, int64_t token) {
  half* const y = p.y + token * p.channels;
  const double count = p.channels;
  double mean = 0;
  double variance = 0;
  for (int64_t c = 0; c < p.channels; ++c) mean += Read(y[c]) / count;
  for (int64_t c = 0; c < p.channels; ++c) {
    variance += (Read(y[c]) - mean) * (Read(y[c]) - mean) / count;
  }
  const double scale = 1 / std::sqrt(variance + double(p.epsilon));
  for (int64_t c = 0; c < p.channels; ++c) {
    y[c] = Rounded((Read(y[c]) - mean) * scale * p.norm_weight[c] + p.norm_bias[c]);
    if (p.gate != nullptr) y[c] = Rounded(Read(y[c]) * Read(p.gate[token * p.channels + c]));
  }
}

}  // namespace

void CrossScanF16Cpu(const CrossScanF16Params& p) {
  const int64_t tokens = Tokens(p);
  std::vector<double> sums(static_cast<size_t>(tokens));
  for (int64_t c = 0; c < p.channels; ++c) {
    for (int64_t t = 0; t < tokens; ++t) sums[t] = double(p.d[c]) * Read(p.x[t * p.channels + c]);
    for (int64_t k = 0; k < kDirections; ++k) ScanChannel(p, k, c, sums);
    for (int64_t t = 0; t < tokens; ++t) p.y[t * p.channels + c] = Rounded(sums[t]);
  }
  if (p.norm_weight == nullptr) return;
  for (int64_t t = 0; t < tokens; ++t) NormToken(p, t);
}

}  // namespace mk
