// Runs one validated request on a model: the host's side of `mk_run`. Used by lanes and by the
// probe.
#ifndef MERGEKERNEL_CORE_RUN_RUN_MODEL_H_
#define MERGEKERNEL_CORE_RUN_RUN_MODEL_H_

#include <atomic>
#include <cstdint>

#include "absl/status/statusor.h"
#include "core/abi/mk_pack.h"
#include "core/base/clock.h"
#include "core/device/arena.h"
#include "core/run/device_lane.h"
#include "core/run/host_pool.h"
#include "core/run/request.h"

namespace mk {

struct RunEnvironment {
  const mk_pack& pack;
  mk_model* model;
  const Signature& signature;
  Arena& scratch;  // reset before and after
  HostPool& outputs;
  const Clock& clock;
  DeviceLane* lane = nullptr;  // on a device with memory of its own; see DeviceLane::Create
};

// When to stop early: polled by the pack through `mk_run.cancelled`.
struct StopSignal {
  std::atomic<bool> cancelled{false};
  int64_t deadline_ns = INT64_MAX;  // on `clock`
};

// Calls the pack's `run` on this thread. REQUIRES ValidateRequest has passed. Checks what the pack
// hands back: every output of the signature produced exactly once with its dtype and a fitting
// shape and size, asked for or not, and BYTES well packed (INTERNAL naming pack and output
// otherwise). The pack's own failure comes back with its code and message. Blocks as long as the
// pack does, and on a device until all that the run started there is done.
//
// With a lane: inputs are copied to the device and outputs back, both through the lane's scratch; a
// run that went well twice is replayed as a graph without the pack (mk_run tells when).
absl::StatusOr<InferResponse> RunModel(const RunEnvironment& environment,
                                       const InferRequest& request, const StopSignal& stop);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_RUN_RUN_MODEL_H_
