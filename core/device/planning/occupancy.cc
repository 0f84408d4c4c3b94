// The granularities are those of CUDA 13.0's cuda_occupancy.h for compute capability 8 and later:
// registers by 256 per warp over four partitions of the register file, shared memory by 128 bytes
// with 1 KiB of the driver's per block.
#include "core/device/planning/occupancy.h"

#include <algorithm>

namespace mk {
namespace {

constexpr int kWarp = 32, kPartitions = 4, kRegisterUnit = 256;
constexpr uint64_t kSharedUnit = 128, kSharedReserved = 1024;

}  // namespace

Occupancy ComputeOccupancy(const SmLimits& limits, int threads, int registers,
                           uint64_t shared_bytes) {
  const int warps = std::max(1, (threads + kWarp - 1) / kWarp);
  const struct {
    int blocks;
    const char* name;
  } bounds[] = {
      {limits.warps / warps, "warps"},
      {limits.blocks, "blocks"},
      {[&] {
         const int per_warp =
             (std::max(1, registers) * kWarp + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
         return limits.registers / kPartitions / per_warp * kPartitions / warps;
       }(),
       "registers"},
      {[&] {
         if (shared_bytes > limits.shared_bytes_per_block) return 0;
         const uint64_t per_block =
             (shared_bytes + kSharedReserved + kSharedUnit - 1) / kSharedUnit * kSharedUnit;
         return static_cast<int>(limits.shared_bytes / per_block);
       }(),
       "shared memory"},
  };
  Occupancy occupancy = {bounds[0].blocks, 0, bounds[0].name};
  for (const auto& bound : bounds) {
    if (bound.blocks >= occupancy.blocks_per_sm) continue;
    occupancy.blocks_per_sm = bound.blocks;
    occupancy.bound = bound.name;
  }
  occupancy.warps_share =
      static_cast<double>(occupancy.blocks_per_sm * warps) / static_cast<double>(limits.warps);
  return occupancy;
}

}  // namespace mk
