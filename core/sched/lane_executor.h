// The lanes of a generation: a bounded queue, and workers that each own a scratch arena.
#ifndef MERGEKERNEL_CORE_SCHED_LANE_EXECUTOR_H_
#define MERGEKERNEL_CORE_SCHED_LANE_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/loader/executor.h"
#include "core/loader/generation.h"
#include "core/run/host_pool.h"
#include "core/sched/admission.h"

namespace mk {

struct LaneOptions {
  QueueLimits limits;                       // of this pack
  std::shared_ptr<GlobalAdmission> global;  // counts over all packs; may be null
};

// Starts `generation.lanes()` threads, each with an arena of the manifest's scratch_bytes, taken
// now from the generation's device (RESOURCE_EXHAUSTED when it does not fit). Order is first come,
// first served. A job's deadline and cancel are honoured at submit, in the queue (an expired job is
// completed when a lane meets it, or within 10 ms of its deadline by the queue's timer), at
// dequeue, and by the pack through `cancelled`; expired work never reaches the pack. `outputs` and
// `clock` outlive the executor.
absl::StatusOr<std::unique_ptr<Executor>> NewLaneExecutor(Generation& generation,
                                                          const LaneOptions& options,
                                                          HostPool& outputs, const Clock& clock);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_SCHED_LANE_EXECUTOR_H_
