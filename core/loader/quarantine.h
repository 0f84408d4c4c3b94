// Remembers on disk which content was being tried when the daemon ended, so that a pack that brings
// it down does not do so at every start.
#ifndef MERGEKERNEL_CORE_LOADER_QUARANTINE_H_
#define MERGEKERNEL_CORE_LOADER_QUARANTINE_H_

#include <set>
#include <string>

#include "core/base/mutex.h"

namespace mk {

// Any thread. Blocks on the file system.
class Quarantine {
 public:
  // Reads `file` (one digest a line); what stands there is held from now on. "": remembers nothing.
  explicit Quarantine(std::string file);

  bool Holds(const std::string& digest) const MK_EXCLUDES(mutex_);
  // Writes the digest down before its code runs here; the second takes it off again, when it has
  // proven itself or was unloaded in peace. A file that cannot be written is no reason to refuse a
  // pack.
  void BeginTrial(const std::string& digest) MK_EXCLUDES(mutex_);
  void EndTrial(const std::string& digest) MK_EXCLUDES(mutex_);

 private:
  void Save() MK_REQUIRES(mutex_);

  const std::string file_;
  mutable Mutex mutex_;
  std::set<std::string> held_ MK_GUARDED_BY(mutex_);
  std::multiset<std::string> trials_ MK_GUARDED_BY(mutex_);
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_QUARANTINE_H_
