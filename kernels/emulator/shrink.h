// From "it fails under some schedule" to the few context switches that matter.
//
// A launch that fails under a random schedule is replayed with fewer and fewer of that schedule's
// switches, the threads otherwise running in order, until none can be left out. Where the race
// detector names the two accesses, single switches between their threads are tried first: mostly
// one is enough. What remains is printed as a trace with source lines.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_SHRINK_H_
#define MERGEKERNEL_KERNELS_EMULATOR_SHRINK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/emulator/emulator.h"
#include "kernels/emulator/sweep.h"

namespace mk {
namespace emu {

// Did this launch fail? Called right after it: may read outputs.
using FailureFunction = std::function<bool(const Report&)>;

struct Shrunk {
  bool found = false;          // some schedule failed
  bool replayed = false;       // and did so again when its switches were replayed (blocks in order)
  Options options;             // under which it did first
  size_t switches_before = 0;  // that it made beyond the forward schedule's
  std::vector<Switch> switches;  // those that suffice: Options::replay takes them
  Report report;                 // of the last failing run, with its trace
  int runs = 0;

  // "2 of 340 context switches suffice: ...", one line each, then the findings.
  std::string Text() const;
};

// Tries the schedules of `base.async`, also with threads switched at memory accesses, with seeds
// from base.seed on, until one fails or `max_runs` are spent; then shrinks it. Without detectors
// (`base.races` and the like off) it finds what makes results differ; `failed` says which do.
Shrunk FindAndShrink(const LaunchFunction& launch, const FailureFunction& failed,
                     const Options& base, int max_runs = 2000);

}  // namespace emu
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_SHRINK_H_
