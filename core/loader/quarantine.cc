#include "core/loader/quarantine.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <utility>

namespace mk {

Quarantine::Quarantine(std::string file) : file_(std::move(file)) {
  MutexLock lock(mutex_);
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    if (line.size() == 64) held_.insert(line);
  }
}

bool Quarantine::Holds(const std::string& digest) const {
  MutexLock lock(mutex_);
  return held_.count(digest) != 0;
}

void Quarantine::BeginTrial(const std::string& digest) {
  MutexLock lock(mutex_);
  trials_.insert(digest);
  Save();
}

void Quarantine::EndTrial(const std::string& digest) {
  MutexLock lock(mutex_);
  const auto found = trials_.find(digest);
  if (found == trials_.end()) return;
  trials_.erase(found);
  Save();
}

void Quarantine::Save() {
  if (file_.empty()) return;
  std::string text;
  for (const std::string& digest : held_) text += digest + "\n";
  for (const std::string& digest : trials_) text += digest + "\n";
  // Written beside and renamed, so that a crash leaves the old or the new list; synced, since the
  // next step may take the machine down.
  const std::string beside = file_ + ".new";
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  fsync(fd);
  close(fd);
  if (written) std::rename(beside.c_str(), file_.c_str());
}

}  // namespace mk
