// Where a generation's requests wait for its lanes, and how one is handed to the other. Private to
// this room.
//
// A request goes straight to a lane that is idle; only when there is none does it wait, and only
// then do the limits speak. So requests wait only while every lane is busy, and the timer, which
// ends what expired or was cancelled meanwhile, sleeps for as long as none waits.
#ifndef MERGEKERNEL_CORE_SCHED_LANE_QUEUE_H_
#define MERGEKERNEL_CORE_SCHED_LANE_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/loader/executor.h"
#include "core/sched/admission.h"

namespace mk {

// A list, so that jobs are taken out of the middle and moved under the lock without an allocation.
using JobList = std::list<std::unique_ptr<Job>>;

// OK, CANCELLED or DEADLINE_EXCEEDED: whether `job`, which has not run, may still do so.
absl::Status WhyEnded(const Job& job, int64_t now_ns, const std::string& model);

// Any thread. Calls no completion: that is for whom the jobs are handed to. Owned by shared_ptr,
// one of which whoever calls Offer holds: the job may run, and its completion let go of the
// executor, before Offer has returned.
class LaneQueue {
 public:
  LaneQueue(std::string model, QueueLimits limits, std::shared_ptr<GlobalAdmission> global,
            int lanes);

  // Takes the only job of `one`, which is then empty; on failure it is left there. UNAVAILABLE
  // after Close; else as core/sched/admission.h. Does not block.
  absl::Status Offer(JobList& one) MK_EXCLUDES(mutex_);

  // For the lane of that number, from one thread: blocks until there is a job; empty after Close.
  // The lane then counts as running until it calls Finished.
  JobList Take(int lane) MK_EXCLUDES(mutex_);
  void Finished() { running_.fetch_sub(1, std::memory_order_relaxed); }

  // For the timer: blocks until waiting jobs have expired or were cancelled, and takes them out;
  // empty after Close. At most 5 ms late, and precise for the nearest deadline that it knew of when
  // it went to sleep.
  JobList TakeEnded(const Clock& clock) MK_EXCLUDES(mutex_);

  // Ends all waiting above. Yields the jobs that no lane has taken.
  JobList Close() MK_EXCLUDES(mutex_);

  uint64_t queued() const MK_EXCLUDES(mutex_);
  uint64_t running() const { return running_.load(std::memory_order_relaxed); }

 private:
  // Where a lane waits.
  struct Seat {
    CondVar wake;
    JobList next;  // guarded by mutex_
  };

  // Moves `job` from the queue to the end of `to`, and its charge from the counts.
  void Release(JobList::iterator job, JobList& to) MK_REQUIRES(mutex_);
  // Takes out what has ended, in order; `nearest_ns` becomes the earliest deadline of the rest.
  JobList Sift(int64_t now_ns, int64_t& nearest_ns) MK_REQUIRES(mutex_);

  const std::string model_;
  const QueueLimits limits_;
  const std::shared_ptr<GlobalAdmission> global_;  // may be null
  std::atomic<uint64_t> running_{0};
  const std::unique_ptr<Seat[]> seats_;  // by lane

  mutable Mutex mutex_;
  JobList waiting_ MK_GUARDED_BY(mutex_);          // not empty only while `idle_` is
  QueueLoad load_ MK_GUARDED_BY(mutex_);           // of `waiting_`
  std::vector<Seat*> idle_ MK_GUARDED_BY(mutex_);  // last in, first out: its caches are warm
  bool closed_ MK_GUARDED_BY(mutex_) = false;
  bool timer_asleep_ MK_GUARDED_BY(mutex_) = false;
  CondVar timer_wake_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_SCHED_LANE_QUEUE_H_
