// Runs a launch under everything that a correct kernel must stand: every schedule, asynchronous
// copies late and early; and without each of its synchronisations, to see that they are needed and
// that their absence is noticed.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_SWEEP_H_
#define MERGEKERNEL_KERNELS_EMULATOR_SWEEP_H_

#include <functional>
#include <string>
#include <vector>

#include "kernels/emulator/emulator.h"

namespace mk {
namespace emu {

// Sets the outputs to a known state, launches with these options, returns the report.
using LaunchFunction = std::function<Report(const Options&)>;
// The bytes of all outputs, after a launch. Null: outputs are not compared (a kernel whose result
// may depend on order).
using OutputFunction = std::function<std::string()>;

struct SweepResult {
  bool ok = true;
  int runs = 0;
  Report first;      // of the first run: its counts and sites
  std::string text;  // what went wrong first, and under which options
};

// All schedules times both kinds of copies; `base` says the rest. Stops at the first run with a
// finding, or with other outputs than the first. Outputs must be the same to the bit.
SweepResult Sweep(const LaunchFunction& launch, const OutputFunction& outputs,
                  const Options& base = {});

struct Mutant {
  SyncSite sync;
  bool caught = false;
  std::string how;  // the first line of what gave it away
};

// Sweeps once more for each synchronisation that the launch comes to, without it. A mutant that is
// not caught was not needed, or the shape is too small to need it.
std::vector<Mutant> MutateSyncs(const LaunchFunction& launch, const OutputFunction& outputs,
                                const Options& base = {});

// "lazy"/"eager", the schedule, the seed.
std::string OptionsText(const Options& options);

}  // namespace emu
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_SWEEP_H_
