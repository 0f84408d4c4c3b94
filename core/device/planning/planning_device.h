// A device that executes nothing and counts everything: what a model allocates, and the launches of
// its runs. Memory is addresses without anything behind them; copies move nothing, and what is read
// back is zeros.
#ifndef MERGEKERNEL_CORE_DEVICE_PLANNING_PLANNING_DEVICE_H_
#define MERGEKERNEL_CORE_DEVICE_PLANNING_PLANNING_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/device/planning/board.h"
#include "core/device/planning/cubin.h"

namespace mk {

struct PlannedLaunch {
  std::string kernel;
  LaunchDims dims;
  // Of the image for the board's architecture; nothing where the pack has none as machine code.
  std::optional<KernelResources> resources;
  uint64_t live_bytes = 0;  // what WatchMemory's function said at that moment
};

// One thread at a time, but for facts and the byte counts.
class PlanningDevice : public Device {
 public:
  // Launches of all streams, in the order they came.
  virtual const std::vector<PlannedLaunch>& launches() const = 0;
  virtual uint64_t copied_to_device_bytes() const = 0;
  virtual uint64_t copied_to_host_bytes() const = 0;
  virtual uint64_t peak_bytes() const = 0;  // the most that was ever allocated
  virtual const Board& board() const = 0;
  // What is alive within the buffers is the arenas' business: asked at each launch.
  virtual void WatchMemory(std::function<uint64_t()> live_bytes) = 0;
  // Forgets launches and copies; memory stays.
  virtual void Clear() = 0;
};

// Takes images for the board's architecture, PTX, and emulated ones, in this order. `budget_bytes`
// 0: the board's memory.
std::unique_ptr<PlanningDevice> NewPlanningDevice(const Board& board, uint64_t budget_bytes = 0);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_PLANNING_PLANNING_DEVICE_H_
