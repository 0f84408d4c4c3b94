// A device that runs a pack's real device code on the CPU, by kernels/emulator: for tests only, so
// that a whole model takes the CUDA path where there is no GPU. Slow, and strict: what the emulator
// finds wrong fails the launch.
#ifndef MERGEKERNEL_CORE_DEVICE_TESTING_EMULATED_DEVICE_H_
#define MERGEKERNEL_CORE_DEVICE_TESTING_EMULATED_DEVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/device/device.h"
#include "kernels/emulator/options.h"
#include "kernels/emulator/traffic.h"

namespace mk {

struct EmulatedOptions {
  emu::Options emulator;  // schedule, detectors
  int sm = 87;
  int compute_units = 16;  // what packs choose their tiles by
  uint64_t budget_bytes = uint64_t{4} << 30;
};

struct EmulatedKernelUse {
  uint64_t launches = 0;
  uint64_t work_bytes = 0;    // as the launches said
  uint64_t global_bytes = 0;  // as the emulator counted; 0 where counting is off
};

// Any thread; launches and copies take turns. No graphs, no events.
class EmulatedDevice : public Device {
 public:
  // What has run since it was made, by kernel.
  virtual std::map<std::string, EmulatedKernelUse> Use() const = 0;
};

// Memory is zeroed and so counts as written: reads of what nobody wrote are found in the kernels'
// own tests. Launch: INTERNAL with the report where the emulator finds something.
std::unique_ptr<EmulatedDevice> NewEmulatedDevice(const EmulatedOptions& options);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_TESTING_EMULATED_DEVICE_H_
