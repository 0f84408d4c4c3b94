#include "core/device/planning/predict.h"

#include <algorithm>

namespace mk {

Prediction Predict(const Board& board, const PlannedLaunch& launch, double launch_seconds) {
  const LaunchDims& dims = launch.dims;
  Prediction p;
  p.blocks = uint64_t{dims.grid[0]} * dims.grid[1] * dims.grid[2];
  const auto sms = static_cast<uint64_t>(board.sm_count);
  const uint64_t rounds = std::max<uint64_t>(1, (p.blocks + sms - 1) / sms);
  p.balance = static_cast<double>(p.blocks) / static_cast<double>(rounds * sms);

  const double tensor = static_cast<double>(dims.work.tensor_flops) / board.tensor.per_second;
  const double fp32 = static_cast<double>(dims.work.flops) / board.fp32.per_second;
  p.memory_seconds = static_cast<double>(dims.work.bytes) / board.dram.per_second;
  p.math_seconds = p.balance > 0 ? (tensor + fp32) / p.balance : 0;
  p.seconds = std::max(p.memory_seconds, p.math_seconds);
  p.bound = p.seconds < launch_seconds           ? "launch"
            : p.memory_seconds >= p.math_seconds ? "memory"
            : tensor >= fp32                     ? "tensor"
                                                 : "fp32";
  if (p.seconds == 0) p.bound = "launch";
  p.seconds += launch_seconds;

  if (!launch.resources) return p;
  p.known = true;
  const int threads = static_cast<int>(dims.block[0] * dims.block[1] * dims.block[2]);
  p.occupancy = ComputeOccupancy(*board.limits, threads, launch.resources->registers,
                                 uint64_t{dims.shared_bytes} + launch.resources->shared_bytes);
  if (p.occupancy.blocks_per_sm > 0) {
    p.waves = static_cast<double>(p.blocks) /
              static_cast<double>(sms * static_cast<uint64_t>(p.occupancy.blocks_per_sm));
  }
  return p;
}

}  // namespace mk
