#include "core/loader/generation_impl.h"

#include <pthread.h>

#include <utility>

#include "core/loader/manifest.h"

namespace mk {

int GenerationImpl::lanes() const { return LanesOf(manifest()); }

absl::Status GenerationImpl::Unload(bool* retired) {
  if (executor_ != nullptr) executor_->Stop();
  executor_.reset();  // gives the lanes' scratch back
  return model_->Unload(retired);
}

Reaper::Reaper(OnUnloaded on_unloaded) : on_unloaded_(std::move(on_unloaded)) {
  thread_ = std::thread([this] { Loop(); });
  pthread_setname_np(thread_.native_handle(), "mk-reaper");
}

Reaper::~Reaper() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

std::shared_ptr<GenerationImpl> Reaper::Wrap(std::shared_ptr<Reaper> self,
                                             std::unique_ptr<GenerationImpl> generation) {
  {
    MutexLock lock(self->mutex_);
    self->alive_.insert(generation->id());
  }
  return std::shared_ptr<GenerationImpl>(
      generation.release(), [self = std::move(self)](GenerationImpl* g) { self->Take(g); });
}

void Reaper::Take(GenerationImpl* generation) {
  {
    MutexLock lock(mutex_);
    queue_.emplace_back(generation);
  }
  changed_.NotifyAll();
}

bool Reaper::WaitFor(uint64_t id, std::chrono::nanoseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (alive_.count(id) != 0) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0) return false;
    changed_.WaitFor(mutex_, left);
  }
  return true;
}

void Reaper::Loop() {
  mutex_.Lock();
  for (;;) {
    if (queue_.empty()) {
      if (ending_) break;
      changed_.Wait(mutex_);
      continue;
    }
    std::unique_ptr<GenerationImpl> generation = std::move(queue_.front());
    queue_.erase(queue_.begin());
    mutex_.Unlock();

    const auto begin = std::chrono::steady_clock::now();
    Unloaded unloaded;
    unloaded.name = generation->name();
    unloaded.version = generation->version();
    unloaded.id = generation->id();
    unloaded.status = generation->Unload(&unloaded.retired);
    generation.reset();
    unloaded.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    on_unloaded_(unloaded);

    mutex_.Lock();
    alive_.erase(unloaded.id);
    changed_.NotifyAll();
  }
  mutex_.Unlock();
}

}  // namespace mk
