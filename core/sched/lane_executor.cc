#include "core/sched/lane_executor.h"

#include <pthread.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/device/arena.h"
#include "core/loader/executor.h"
#include "core/loader/generation.h"
#include "core/loader/manifest.h"
#include "core/run/device_lane.h"
#include "core/run/host_pool.h"
#include "core/run/run_model.h"
#include "core/sched/lane_queue.h"

namespace mk {
namespace {

// A completion is the host's own code and must not throw; where it does all the same (no memory for
// an answer), its request is lost and the lane is not.
void Complete(std::unique_ptr<Job> job, absl::StatusOr<InferResponse> result) {
  try {
    job->done(*job, std::move(result));
  } catch (...) {
  }
}

class LaneExecutor : public Executor {
 public:
  LaneExecutor(const Generation& generation, const LaneOptions& options, HostPool& outputs,
               const Clock& clock)
      : model_name_(generation.name()),
        pack_(generation.pack()),
        model_(generation.model()),
        signature_(generation.signature()),
        outputs_(outputs),
        clock_(clock),
        queue_(std::make_shared<LaneQueue>(generation.name(), options.limits, options.global,
                                           generation.lanes())) {}
  ~LaneExecutor() override { Stop(); }

  // Takes the arenas and starts the threads. On failure the destructor ends what has been started.
  absl::Status Start(Generation& generation);

  void Submit(std::unique_ptr<Job> job) override;
  void Stop() override MK_EXCLUDES(stop_mutex_);
  uint64_t queued() const override { return queue_->queued(); }
  uint64_t running() const override { return queue_->running(); }

 private:
  void StartThread(const char* name, std::function<void()> body);
  void LaneLoop(int lane);
  void TimerLoop();
  absl::StatusOr<InferResponse> Run(int lane, Job& job);

  const std::string model_name_;
  const mk_pack& pack_;
  mk_model* const model_;
  const Signature& signature_;
  HostPool& outputs_;
  const Clock& clock_;
  const std::shared_ptr<LaneQueue> queue_;
  // By lane; fixed once the threads run.
  std::vector<std::unique_ptr<Arena>> scratch_;
  std::vector<std::unique_ptr<DeviceLane>> device_lanes_;  // null on the CPU device
  Mutex stop_mutex_;                                       // a second Stop waits for the first
  std::vector<std::thread> threads_;                       // the lanes and the timer
};

absl::Status LaneExecutor::Start(Generation& generation) {
  const int lanes = generation.lanes();
  const uint64_t scratch_bytes =
      ScratchBytesOn(generation.manifest(), generation.device().facts().kind);
  for (int i = 0; i < lanes; ++i) {
    auto arena = Arena::Create(generation.device(), generation.memory(), scratch_bytes);
    if (!arena.ok()) {
      return absl::Status(arena.status().code(),
                          absl::StrCat("scratch of lane ", i + 1, " of ", lanes, " of model '",
                                       model_name_, "': ", arena.status().message()));
    }
    scratch_.push_back(*std::move(arena));
    auto device_lane = DeviceLane::Create(generation.device(), AllowsCapture(pack_));
    if (!device_lane.ok()) {
      return absl::Status(device_lane.status().code(),
                          absl::StrCat("stream of lane ", i + 1, " of ", lanes, " of model '",
                                       model_name_, "': ", device_lane.status().message()));
    }
    device_lanes_.push_back(*std::move(device_lane));
  }
  try {
    threads_.reserve(static_cast<size_t>(lanes) + 1);
    for (int i = 0; i < lanes; ++i) {
      StartThread("mk-lane", [this, i] { LaneLoop(i); });
    }
    StartThread("mk-lane-timer", [this] { TimerLoop(); });
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(absl::StrCat("thread ", threads_.size() + 1, " of ",
                                                     lanes + 1, " of model '", model_name_,
                                                     "' did not start: ", error.what()));
  }
  return absl::OkStatus();
}

void LaneExecutor::StartThread(const char* name, std::function<void()> body) {
  threads_.emplace_back([name, body = std::move(body)] {
    pthread_setname_np(pthread_self(), name);
    body();
  });
}

void LaneExecutor::Submit(std::unique_ptr<Job> job) {
  // From the moment a lane has the job, only locals are touched: see LaneQueue.
  const std::shared_ptr<LaneQueue> queue = queue_;
  job->times.queued_ns = clock_.NowNs();
  absl::Status refusal = WhyEnded(*job, job->times.queued_ns, model_name_);
  JobList one;
  one.push_back(std::move(job));
  if (refusal.ok()) refusal = queue->Offer(one);
  if (!refusal.ok()) Complete(std::move(one.front()), std::move(refusal));
}

void LaneExecutor::Stop() {
  for (std::unique_ptr<Job>& job : queue_->Close()) {
    Complete(std::move(job),
             absl::UnavailableError(absl::StrCat("model '", model_name_, "' is being unloaded")));
  }
  MutexLock lock(stop_mutex_);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void LaneExecutor::LaneLoop(int lane) {
  for (;;) {
    JobList taken = queue_->Take(lane);
    if (taken.empty()) return;
    std::unique_ptr<Job> job = std::move(taken.front());
    absl::StatusOr<InferResponse> result = Run(lane, *job);
    // Before the answer, so that whoever has it finds the lane counted as free.
    queue_->Finished();
    Complete(std::move(job), std::move(result));
  }
}

absl::StatusOr<InferResponse> LaneExecutor::Run(int lane, Job& job) {
  const int64_t now_ns = clock_.NowNs();
  MK_RETURN_IF_ERROR(WhyEnded(job, now_ns, model_name_));
  job.times.started_ns = now_ns;
  const auto index = static_cast<size_t>(lane);
  const RunEnvironment environment = {
      pack_, model_, signature_, *scratch_[index], outputs_, clock_, device_lanes_[index].get()};
  // A pack must not throw, and its SDK sees to it; one that does without it must not end the
  // daemon.
  absl::StatusOr<InferResponse> result = [&]() -> absl::StatusOr<InferResponse> {
    try {
      return RunModel(environment, job.request, *job.stop);
    } catch (const std::exception& error) {
      return absl::InternalError(
          absl::StrCat("model '", model_name_, "' threw: ", Printable(error.what())));
    } catch (...) {
      return absl::InternalError(
          absl::StrCat("model '", model_name_, "' threw what is no std::exception"));
    }
  }();
  job.times.finished_ns = clock_.NowNs();
  return result;
}

void LaneExecutor::TimerLoop() {
  for (;;) {
    JobList ended = queue_->TakeEnded(clock_);
    if (ended.empty()) return;
    for (std::unique_ptr<Job>& job : ended) {
      absl::Status why = WhyEnded(*job, clock_.NowNs(), model_name_);
      Complete(std::move(job), std::move(why));
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> NewLaneExecutor(Generation& generation,
                                                          const LaneOptions& options,
                                                          HostPool& outputs, const Clock& clock) {
  auto executor = std::make_unique<LaneExecutor>(generation, options, outputs, clock);
  MK_RETURN_IF_ERROR(executor->Start(generation));
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace mk
