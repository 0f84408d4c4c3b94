// Decides which thread of a block goes on. Values in, a thread out: no fiber is touched here.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_SCHEDULER_H_
#define MERGEKERNEL_KERNELS_EMULATOR_SCHEDULER_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernels/emulator/options.h"

namespace mk {
namespace emu {

// A small generator with a documented step (SplitMix64), the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  uint32_t Below(uint32_t bound) {
    return static_cast<uint32_t>((Next() >> 32) * bound >> 32);
  }  // REQUIRES bound > 0

 private:
  uint64_t state_;
};

class Scheduler {
 public:
  static constexpr uint32_t kMaxThreads = 1024;
  static constexpr uint32_t kNone = ~0u;

  explicit Scheduler(const Options& options);

  // The order of `blocks` blocks. At most 2^20 are permuted; more go ascending or descending.
  std::vector<uint64_t> BlockOrder(uint64_t blocks);

  // A block of `threads` threads begins, all ready. Returns the first to run.
  uint32_t Begin(uint64_t block, uint32_t threads);

  void SetReady(uint32_t thread);
  void SetWaiting(uint32_t thread);

  // `current` must wait or has ended (and was set waiting): who goes on? kNone: nobody can.
  uint32_t Next(uint32_t current);

  // `current` is about to touch memory: kNone, or the thread that shall run before it.
  uint32_t Preempt(uint32_t current);

  // The next ready thread after `current`, whatever the schedule; kNone if there is no other.
  uint32_t Other(uint32_t current) const;

  // Whether Preempt must be asked before each access: steps are counted there too.
  bool preempts() const { return preempts_; }
  // Whether the last answer was one of Options::replay.
  bool ruled() const { return ruled_; }
  const std::vector<Switch>& recorded() const { return recorded_; }

 private:
  uint32_t First(uint32_t threads);
  uint32_t Choose(uint32_t current);
  uint32_t InOrder(uint32_t current) const;
  uint32_t Ascending(uint32_t current) const;
  uint32_t Descending(uint32_t current) const;
  uint32_t RandomWarp();
  uint32_t Replayed(uint32_t current);
  bool IsReady(uint32_t thread) const { return (ready_[thread / 32] >> (thread % 32) & 1u) != 0; }

  Options options_;
  Random random_;
  bool preempts_;
  bool ruled_ = false;
  uint32_t ready_[kMaxThreads / 32] = {};
  uint32_t ready_warps_ = 0;
  uint64_t block_ = 0;
  std::vector<uint32_t> steps_;  // per thread, points of decision so far
  std::vector<Switch> recorded_;
  std::unordered_map<uint64_t, std::vector<Switch>> replay_;  // by block and thread
};

}  // namespace emu
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_SCHEDULER_H_
