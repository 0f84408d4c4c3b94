// A pack served without gRPC, through the same registry: what the daemon's own share is measured
// against.
#ifndef MERGEKERNEL_TESTS_BENCH_IN_PROCESS_H_
#define MERGEKERNEL_TESTS_BENCH_IN_PROCESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/cases.h"
#include "tests/bench/load_result.h"

namespace mk {

enum class InProcessWay {
  kDirect,  // RunModel on the caller's thread: the pack alone
  kLanes,   // Executor::Submit, a lane's thread, and back
};

// One thread at a time.
class InProcess {
 public:
  // Opens `repository` with a registry of its own; packs are loaded as they are asked for.
  static absl::StatusOr<std::unique_ptr<InProcess>> Open(const std::string& repository,
                                                         InProcessWay way);
  virtual ~InProcess() = default;

  // Blocks for the plan's time. With kDirect callers take turns, as the pack has one arena. The
  // first answer of each caller is compared with what it must be; any failure ends the run with it.
  virtual absl::StatusOr<LoadResult> Run(const BenchCase& bench_case, const LoadPlan& plan) = 0;
};

}  // namespace mk

#endif  // MERGEKERNEL_TESTS_BENCH_IN_PROCESS_H_
