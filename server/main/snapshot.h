// The state of the daemon as the metrics endpoint shows it.
#ifndef MERGEKERNEL_SERVER_MAIN_SNAPSHOT_H_
#define MERGEKERNEL_SERVER_MAIN_SNAPSHOT_H_

#include "core/base/clock.h"
#include "core/device/device.h"
#include "core/loader/registry.h"
#include "core/metrics/families.h"
#include "core/metrics/model_stats.h"
#include "core/run/host_pool.h"
#include "core/sched/admission.h"

namespace mk {

struct SnapshotSources {
  const Device& device;
  const Registry& registry;
  const HostPool& pool;
  const StatsTable& stats;
  const GlobalAdmission& admission;
  const Clock& clock;
  int64_t started_ns;
};

DaemonSnapshot TakeSnapshot(const SnapshotSources& sources, bool ready);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_MAIN_SNAPSHOT_H_
