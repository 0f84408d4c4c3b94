// What a launch should take on a board, by the roofline: the larger of moving its bytes at the
// board's rate and computing its FLOPs at the rate of what computes them.
//
//   memory   bytes / dram
//   math     (tensor_flops / tensor + flops / fp32) / balance
//   balance  blocks / (SMs ceil(blocks / SMs)): SMs that have nothing to do in the last round
//   launch   a number that whoever asks assumes for every launch, 0 if none
//
// A prediction, and told as one. What it leaves out makes real times larger (latency of dependent
// steps, few warps in flight, address arithmetic) or smaller (what the L2 cache still holds of the
// launch before).
#ifndef MERGEKERNEL_CORE_DEVICE_PLANNING_PREDICT_H_
#define MERGEKERNEL_CORE_DEVICE_PLANNING_PREDICT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/device/planning/board.h"
#include "core/device/planning/occupancy.h"
#include "core/device/planning/planning_device.h"

namespace mk {

struct Prediction {
  double seconds = 0;  // the larger of the two, and the launch
  double memory_seconds = 0;
  double math_seconds = 0;
  double balance = 1;      // 0 to 1
  const char* bound = "";  // "memory", "tensor", "fp32", "launch" (says nothing of its cost)
  uint64_t blocks = 0;
  double waves = 0;    // blocks / (SMs x blocks per SM); 0 where occupancy is unknown
  bool known = false;  // occupancy is that of machine code for this board
  Occupancy occupancy;
};

// Pure.
Prediction Predict(const Board& board, const PlannedLaunch& launch, double launch_seconds);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_PLANNING_PREDICT_H_
