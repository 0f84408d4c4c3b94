// A run of a pack on a real device, launch by launch: what the plan's predictions are held against.
#ifndef MERGEKERNEL_CORE_LOADER_MEASURE_PACK_H_
#define MERGEKERNEL_CORE_LOADER_MEASURE_PACK_H_

#include <memory>

#include "absl/status/status.h"
#include "core/loader/planned_request.h"
#include "core/loader/sealed_pack.h"
#include "proto/mergekernel/v1/plan.pb.h"

namespace mk {

// In this process: loads the pack on options.measure_on, which runs its code, and fills the
// measured fields of `plan`, whose launches must be the device's own (FAILED_PRECONDITION naming
// the first that differs: then `board` is not what the device is). Whole runs go the way that the
// daemon's go, with a graph from the third on; launches are clocked one by one beside that
// (core/device/timed_device.h), median over five such runs. Blocks.
absl::Status MeasurePack(std::shared_ptr<const SealedPack> pack, const PlanOptions& options,
                         mergekernel::v1::Plan& plan);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_MEASURE_PACK_H_
