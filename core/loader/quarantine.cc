#include "core/loader/quarantine.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <utility>

namespace mk {

Quarantine::Quarantine(std::string file, const Clock& clock)
    : file_(std::move(file)), clock_(clock) {
  if (file_.empty()) return;
  {
    MutexLock lock(mutex_);
    std::ifstream in(file_);
    for (std::string line; std::getline(in, line);) {
      if (line.size() == 64) held_.insert(line);
    }
  }
  thread_ = std::thread([this] { Loop(); });
  pthread_setname_np(thread_.native_handle(), "mk-trials");
}

Quarantine::~Quarantine() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

bool Quarantine::Holds(const std::string& digest) const {
  MutexLock lock(mutex_);
  return held_.count(digest) != 0;
}

void Quarantine::BeginTrial(uint64_t id, const std::string& digest) {
  if (file_.empty()) return;
  MutexLock lock(mutex_);
  trials_[id].digest = digest;
  Save();
}

void Quarantine::Served(uint64_t id) {
  {
    MutexLock lock(mutex_);
    const auto found = trials_.find(id);
    if (found == trials_.end()) return;
    found->second.end_ns = clock_.NowNs() + kTrialNs;
  }
  changed_.NotifyAll();
}

void Quarantine::EndTrial(uint64_t id) {
  MutexLock lock(mutex_);
  if (trials_.erase(id) != 0) Save();
}

bool Quarantine::EndExpired() {
  const int64_t now_ns = clock_.NowNs();
  bool ended = false, waiting = false;
  for (auto it = trials_.begin(); it != trials_.end();) {
    if (it->second.end_ns <= now_ns) {
      it = trials_.erase(it);
      ended = true;
    } else {
      waiting = waiting || it->second.end_ns != INT64_MAX;
      ++it;
    }
  }
  if (ended) Save();
  return waiting;
}

void Quarantine::Loop() {
  MutexLock lock(mutex_);
  while (!ending_) {
    // Looks at the clock in steps, since a clock that is passed in cannot be waited on.
    if (EndExpired()) {
      changed_.WaitFor(mutex_, std::chrono::milliseconds(200));
    } else {
      changed_.Wait(mutex_);
    }
  }
}

void Quarantine::Save() {
  std::string text;
  for (const std::string& digest : held_) text += digest + "\n";
  for (const auto& [id, trial] : trials_) text += trial.digest + "\n";
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
