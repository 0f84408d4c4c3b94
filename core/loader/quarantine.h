// Remembers on disk which content was being tried when the daemon ended, so that a pack that brings
// it down does not do so at every start.
#ifndef MERGEKERNEL_CORE_LOADER_QUARANTINE_H_
#define MERGEKERNEL_CORE_LOADER_QUARANTINE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace mk {

// Any thread. Blocks on the file system.
class Quarantine {
 public:
  // After so long in service a generation has proven itself.
  static constexpr int64_t kTrialNs = 10'000'000'000;

  // Reads `file` (one digest a line); what stands there is held from now on. "": remembers nothing.
  // `clock` outlives it.
  Quarantine(std::string file, const Clock& clock);
  ~Quarantine();

  bool Holds(const std::string& digest) const MK_EXCLUDES(mutex_);

  // Writes the digest of generation `id` down before its code runs here. A file that cannot be
  // written is no reason to refuse a pack.
  void BeginTrial(uint64_t id, const std::string& digest) MK_EXCLUDES(mutex_);
  // It serves from now on: its trial ends by itself after kTrialNs on the clock, on a thread of
  // ours, so that a loss of power hours later does not speak against it.
  void Served(uint64_t id) MK_EXCLUDES(mutex_);
  // It was refused or unloaded in peace. Nothing for one whose trial is over.
  void EndTrial(uint64_t id) MK_EXCLUDES(mutex_);

 private:
  struct Trial {
    std::string digest;
    int64_t end_ns = INT64_MAX;
  };

  void Loop() MK_EXCLUDES(mutex_);
  bool EndExpired() MK_REQUIRES(mutex_);  // true when some that serve are still on trial
  void Save() MK_REQUIRES(mutex_);

  const std::string file_;
  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::set<std::string> held_ MK_GUARDED_BY(mutex_);
  std::map<uint64_t, Trial> trials_ MK_GUARDED_BY(mutex_);
  bool ending_ MK_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // only where there is a file
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_QUARANTINE_H_
