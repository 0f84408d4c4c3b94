// A run of a pack on the planning device: what it would launch and take, without a GPU.
#ifndef MERGEKERNEL_CORE_LOADER_PLAN_PACK_H_
#define MERGEKERNEL_CORE_LOADER_PLAN_PACK_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device/device.h"
#include "core/loader/planned_request.h"
#include "core/loader/probe.h"
#include "core/loader/sealed_pack.h"
#include "proto/mergekernel/v1/plan.pb.h"

namespace mk {

// In this process: loads the pack, which runs its code. INVALID_ARGUMENT where the manifest does
// not name "cuda" or the inputs do not fit; the pack's own refusals as they are.
absl::StatusOr<mergekernel::v1::Plan> PlanPack(std::shared_ptr<const SealedPack> pack,
                                               const PlanOptions& options);

// Whether a pack may be tried on the device that these facts are of: planned for it, its golden
// case takes no more memory than the manifest declares, which is what lanes get and what the budget
// is held against. In this process, as PlanPack; nothing is asked of the device. INVALID_ARGUMENT
// naming field and numbers. OK where there is no golden case, and where the plan itself fails (a
// pack may need what it reads back, which is zeros here): then its run alone is judged.
absl::Status AdmitByPlan(std::shared_ptr<const SealedPack> pack, const DeviceFacts& facts);

// PlanPack in a mergekernel-probe of its own, as RunProbe: a crash or a hang stays there.
absl::StatusOr<mergekernel::v1::Plan> RunPlan(const SealedPack& pack, const ProbeOptions& probe,
                                              const PlanOptions& options);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_PLAN_PACK_H_
