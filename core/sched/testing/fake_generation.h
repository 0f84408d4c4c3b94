// For tests: a generation whose pack is a table of plain functions in this program, with counters
// and a gate, and jobs to send to it.
#ifndef MERGEKERNEL_CORE_SCHED_TESTING_FAKE_GENERATION_H_
#define MERGEKERNEL_CORE_SCHED_TESTING_FAKE_GENERATION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/abi/mk_pack.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/device/device.h"
#include "core/device/memory_account.h"
#include "core/loader/executor.h"
#include "core/loader/generation.h"
#include "core/run/request.h"
#include "proto/mergekernel/v1/pack.pb.h"

// What the fake pack's functions work on: set before jobs are sent, or atomically.
struct mk_model {
  // Behaviour.
  int64_t work_ns = 0;           // how long a run takes
  bool polls = true;             // looks at `cancelled` meanwhile
  bool throws = false;           // against the contract
  uint64_t scratch_bytes = 0;    // asked for in each run
  std::atomic<bool> gate{true};  // while false, runs do not end
  // Counters.
  std::atomic<int> started{0};
  std::atomic<int> completed{0};  // ran to the end of their work
  std::atomic<int> running{0};
  std::atomic<int> most_running{0};
  mk::Mutex mutex;
  std::vector<int64_t> tags MK_GUARDED_BY(mutex);  // the parameter "tag" of each run, as started
};

namespace mk {

class FakeGeneration : public Generation {
 public:
  struct Options {
    int lanes = 1;
    uint64_t scratch_bytes = 4096;
    uint64_t device_budget_bytes = 64 << 20;
  };
  explicit FakeGeneration(const Options& options);

  const std::string& name() const override { return name_; }
  int64_t version() const override { return 1; }
  uint64_t id() const override { return 1; }
  const mergekernel::v1::Manifest& manifest() const override { return manifest_; }
  const std::string& digest() const override { return name_; }
  const Signature& signature() const override { return signature_; }
  const std::string& labels() const override { return name_; }
  const mk_pack& pack() const override { return pack_; }
  mk_model* model() const override { return &model_; }
  Device& device() const override { return *device_; }
  MemoryAccount& memory() const override { return memory_; }
  int lanes() const override { return options_.lanes; }
  int64_t loaded_unix_ms() const override { return 0; }
  double load_seconds() const override { return 0; }
  Executor& executor() const override;  // aborts: tests hold theirs

 private:
  const Options options_;
  const std::string name_ = "fake";
  mergekernel::v1::Manifest manifest_;
  Signature signature_;
  mk_pack pack_ = {};
  mutable mk_model model_;
  std::unique_ptr<Device> device_;
  mutable MemoryAccount memory_;
};

// One answer to wait for.
class Answer {
 public:
  void Set(const Job& job, absl::StatusOr<InferResponse> result);
  void Wait();
  bool done() const;
  int times_done() const;
  absl::StatusCode code() const;
  std::string message() const;
  std::vector<uint8_t> output() const;  // of an OK answer
  RequestTimes times() const;
  int64_t done_ns() const;  // of the system's clock

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  int times_done_ MK_GUARDED_BY(mutex_) = 0;
  absl::Status status_ MK_GUARDED_BY(mutex_);
  std::vector<uint8_t> output_ MK_GUARDED_BY(mutex_);
  RequestTimes times_ MK_GUARDED_BY(mutex_);
  int64_t done_ns_ MK_GUARDED_BY(mutex_) = 0;
};

// A job with one input byte, `tag`, that comes back as the output, charged with `charged_bytes`.
struct Sent {
  std::shared_ptr<Answer> answer = std::make_shared<Answer>();
  std::shared_ptr<StopSignal> stop = std::make_shared<StopSignal>();
};
std::unique_ptr<Job> MakeJob(const Sent& sent, int64_t tag, uint64_t charged_bytes = 1);
Sent Send(Executor& executor, int64_t tag, int64_t deadline_ns = INT64_MAX,
          uint64_t charged_bytes = 1);

// Blocks until `condition` holds; false after 10 s.
bool Eventually(const std::function<bool()>& condition);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_SCHED_TESTING_FAKE_GENERATION_H_
