// How many blocks of a kernel an SM holds at once: CUDA's own rule, for the architectures of
// SmLimits.
#ifndef MERGEKERNEL_CORE_DEVICE_PLANNING_OCCUPANCY_H_
#define MERGEKERNEL_CORE_DEVICE_PLANNING_OCCUPANCY_H_

#include <cstdint>

#include "core/device/planning/board.h"

namespace mk {

struct Occupancy {
  int blocks_per_sm = 0;   // 0: one block does not fit
  double warps_share = 0;  // of the warps that an SM can hold
  const char* bound = "";  // "warps", "blocks", "registers", "shared memory"
};

// `threads` of a block (1 to 1024), `registers` of a thread, `shared_bytes` static and dynamic of a
// block. Pure.
Occupancy ComputeOccupancy(const SmLimits& limits, int threads, int registers,
                           uint64_t shared_bytes);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_PLANNING_OCCUPANCY_H_
