#include "core/sched/lane_queue.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace mk {
namespace {

// A cancel is a flag that nobody announces, so while requests wait they are looked at this often;
// half of the 10 ms that the interface promises.
constexpr int64_t kScanNs = 5'000'000;
// The shortest sleep, so that a clock that stands still just before a deadline costs no busy loop.
constexpr int64_t kLeastSleepNs = 100'000;

}  // namespace

absl::Status WhyEnded(const Job& job, int64_t now_ns, const std::string& model) {
  if (job.stop->cancelled.load(std::memory_order_relaxed)) {
    return absl::CancelledError(
        absl::StrCat("request for model '", model, "' was cancelled before it ran"));
  }
  if (now_ns >= job.stop->deadline_ns) {
    return absl::DeadlineExceededError(
        absl::StrCat("the deadline of the request for model '", model, "' passed ",
                     (now_ns - job.times.queued_ns) / 1000, " us after it was queued, unrun"));
  }
  return absl::OkStatus();
}

LaneQueue::LaneQueue(std::string model, QueueLimits limits, std::shared_ptr<GlobalAdmission> global,
                     int lanes)
    : model_(std::move(model)),
      limits_(limits),
      global_(std::move(global)),
      seats_(std::make_unique<Seat[]>(static_cast<size_t>(lanes))) {
  // So that a lane that sits down cannot fail.
  idle_.reserve(static_cast<size_t>(lanes));
}

absl::Status LaneQueue::Offer(JobList& one) {
  const uint64_t bytes = one.front()->charged_bytes;
  // What can never wait is refused even if a lane is idle: whether a request is legal must not
  // depend on the load.
  MK_RETURN_IF_ERROR(Admit({UINT64_MAX, limits_.max_bytes}, {}, bytes));

  CondVar* wake = nullptr;
  {
    MutexLock lock(mutex_);
    if (closed_) {
      return absl::UnavailableError(absl::StrCat("model '", model_, "' is being unloaded"));
    }
    if (!idle_.empty()) {
      Seat* const seat = idle_.back();
      idle_.pop_back();
      seat->next.splice(seat->next.end(), one);
      running_.fetch_add(1, std::memory_order_relaxed);
      wake = &seat->wake;
    } else {
      MK_RETURN_IF_ERROR(Admit(limits_, load_, bytes));
      if (global_ != nullptr) MK_RETURN_IF_ERROR(global_->Enter(bytes));
      waiting_.splice(waiting_.end(), one);
      ++load_.requests;
      load_.bytes += bytes;
      if (timer_asleep_) wake = &timer_wake_;
      timer_asleep_ = false;  // one wake-up, however many arrive before it runs
    }
  }
  // Without the lock, which the woken thread wants at once.
  if (wake != nullptr) wake->NotifyOne();
  return absl::OkStatus();
}

void LaneQueue::Release(JobList::iterator job, JobList& to) {
  const uint64_t bytes = (*job)->charged_bytes;
  --load_.requests;
  load_.bytes -= bytes;
  if (global_ != nullptr) global_->Leave(bytes);
  to.splice(to.end(), waiting_, job);
}

JobList LaneQueue::Take(int lane) {
  Seat& seat = seats_[static_cast<size_t>(lane)];
  JobList taken;
  MutexLock lock(mutex_);
  if (!waiting_.empty()) {
    Release(waiting_.begin(), taken);
    running_.fetch_add(1, std::memory_order_relaxed);
    return taken;
  }
  if (closed_) return taken;
  idle_.push_back(&seat);
  // After Close a job that was already handed over is still run.
  while (seat.next.empty() && !closed_) seat.wake.Wait(mutex_);
  taken.splice(taken.end(), seat.next);
  return taken;
}

JobList LaneQueue::Sift(int64_t now_ns, int64_t& nearest_ns) {
  JobList ended;
  nearest_ns = INT64_MAX;
  for (auto job = waiting_.begin(); job != waiting_.end();) {
    const auto next = std::next(job);
    const StopSignal& stop = *(*job)->stop;
    if (stop.cancelled.load(std::memory_order_relaxed) || now_ns >= stop.deadline_ns) {
      Release(job, ended);
    } else {
      nearest_ns = std::min(nearest_ns, stop.deadline_ns);
    }
    job = next;
  }
  return ended;
}

JobList LaneQueue::TakeEnded(const Clock& clock) {
  MutexLock lock(mutex_);
  for (;;) {
    while (waiting_.empty() && !closed_) {
      timer_asleep_ = true;
      timer_wake_.Wait(mutex_);
    }
    timer_asleep_ = false;
    if (closed_) return {};
    const int64_t now_ns = clock.NowNs();
    int64_t nearest_ns;
    JobList ended = Sift(now_ns, nearest_ns);
    if (!ended.empty()) return ended;
    const int64_t sleep_ns = std::clamp(nearest_ns - now_ns, kLeastSleepNs, kScanNs);
    timer_wake_.WaitFor(mutex_, std::chrono::nanoseconds(sleep_ns));
  }
}

JobList LaneQueue::Close() {
  JobList left;
  MutexLock lock(mutex_);
  closed_ = true;
  while (!waiting_.empty()) Release(waiting_.begin(), left);
  for (Seat* const seat : idle_) seat->wake.NotifyOne();
  idle_.clear();
  timer_wake_.NotifyOne();
  return left;
}

uint64_t LaneQueue::queued() const {
  MutexLock lock(mutex_);
  return load_.requests;
}

}  // namespace mk
