// How a launch is run, and what it is watched for.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_OPTIONS_H_
#define MERGEKERNEL_KERNELS_EMULATOR_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "kernels/device/emulated.h"

namespace mk {
namespace emu {

// The order in which threads that can go on do so, and in which blocks follow each other. A thread
// runs until it must wait for others.
enum class Schedule {
  kForward,   // ascending, a warp for as long as one of its lanes can go on; blocks ascending
  kReverse,   // descending, likewise; blocks descending
  kShuffled,  // any thread of the block each time; blocks in any order
  kWarpSkew,  // one warp, drawn each time, for as long as one of its lanes can go on: the warps
              // drift apart as far as barriers allow
};
inline constexpr Schedule kAllSchedules[] = {Schedule::kForward, Schedule::kReverse,
                                             Schedule::kShuffled, Schedule::kWarpSkew};
const char* ScheduleName(Schedule schedule);

// When cp.async happens. Both are legal, and so a kernel must give the same result under both.
enum class AsyncCopies {
  kLazy,   // at the wait that covers it, and the destination is poison until then
  kEager,  // at once
};

// "When `thread` of `block` comes to its `step`-th point of decision, `to` goes on." See shrink.h.
struct Switch {
  uint64_t block;
  uint32_t thread, step, to;
};

struct Options {
  Schedule schedule = Schedule::kForward;
  uint64_t seed = 1;  // of kShuffled and kWarpSkew, and of preemption
  AsyncCopies async = AsyncCopies::kLazy;

  // Detectors. Bounds, alignment, divergence, deadlock are always watched.
  bool races = true;
  bool uninitialised = true;
  bool count = true;  // bytes, sectors, bank conflicts
  int max_findings = 8;

  // Also switch threads before one of `preempt_one_in` memory accesses; 0: never.
  uint32_t preempt_one_in = 0;
  // Points of decision are recorded into the report, or taken from here (then `schedule` is
  // kForward otherwise).
  bool record = false;
  const std::vector<Switch>* replay = nullptr;

  // Passes over the synchronisation at this line, as if it had been deleted: for checks that tests
  // would notice.
  Site ignored_sync = {nullptr, 0};

  uint32_t shared_limit_bytes = 163 * 1024;  // per block, static and dynamic together: sm_87's
  uint32_t stack_bytes = 0;                  // per thread; 0: enough
};

}  // namespace emu
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_OPTIONS_H_
