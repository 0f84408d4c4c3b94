// The registry's own view of a generation, and the reaper that unloads those nobody holds any more.
#ifndef MERGEKERNEL_CORE_LOADER_GENERATION_IMPL_H_
#define MERGEKERNEL_CORE_LOADER_GENERATION_IMPL_H_

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/loader/generation.h"
#include "core/loader/loaded_model.h"

namespace mk {

class GenerationImpl : public Generation {
 public:
  GenerationImpl(uint64_t id, Device& device, std::unique_ptr<LoadedModel> model,
                 std::string labels, int64_t loaded_unix_ms)
      : id_(id),
        device_(device),
        model_(std::move(model)),
        labels_(std::move(labels)),
        loaded_unix_ms_(loaded_unix_ms) {}

  const std::string& name() const override { return manifest().name(); }
  int64_t version() const override { return manifest().version(); }
  uint64_t id() const override { return id_; }
  const mergekernel::v1::Manifest& manifest() const override { return model_->sealed().manifest; }
  const std::string& digest() const override { return model_->sealed().digest; }
  const Signature& signature() const override { return model_->signature(); }
  const std::string& labels() const override { return labels_; }
  const mk_pack& pack() const override { return model_->pack(); }
  mk_model* model() const override { return model_->model(); }
  Device& device() const override { return device_; }
  MemoryAccount& memory() const override { return model_->memory(); }
  int lanes() const override;
  int64_t loaded_unix_ms() const override { return loaded_unix_ms_; }
  double load_seconds() const override { return load_seconds_; }
  Executor& executor() const override { return *executor_; }

  // The golden file's bytes. REQUIRES that the manifest has one.
  std::string_view golden_bytes() const {
    return model_->sealed().small.at(manifest().golden().file())->bytes();
  }

  // Only before it is published.
  void set_executor(std::unique_ptr<Executor> executor) { executor_ = std::move(executor); }
  void set_load_seconds(double seconds) { load_seconds_ = seconds; }

  // Ends the lanes, then unloads; see LoadedModel::Unload.
  absl::Status Unload(bool* retired);

 private:
  const uint64_t id_;
  Device& device_;
  const std::unique_ptr<LoadedModel> model_;
  const std::string labels_;
  const int64_t loaded_unix_ms_;
  double load_seconds_ = 0;
  std::unique_ptr<Executor> executor_;
};

// Unloads generations on a thread of its own, in the order in which their last handles were
// released.
class Reaper {
 public:
  struct Unloaded {
    std::string name;
    int64_t version = 0;
    uint64_t id = 0;
    absl::Status status;
    bool retired = false;
    double seconds = 0;
  };
  using OnUnloaded = std::function<void(const Unloaded&)>;

  explicit Reaper(OnUnloaded on_unloaded);
  ~Reaper();  // ends when all it was given is unloaded

  // A handle whose last release brings the generation here. `self` is shared, so that a late
  // release finds it alive.
  static std::shared_ptr<GenerationImpl> Wrap(std::shared_ptr<Reaper> self,
                                              std::unique_ptr<GenerationImpl> generation);

  // Waits until the generation is unloaded; false when time is up first. Not from the reaper's
  // thread.
  bool WaitFor(uint64_t id, std::chrono::nanoseconds timeout) MK_EXCLUDES(mutex_);

 private:
  void Take(GenerationImpl* generation) MK_EXCLUDES(mutex_);
  void Loop() MK_EXCLUDES(mutex_);

  const OnUnloaded on_unloaded_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<GenerationImpl>> queue_ MK_GUARDED_BY(mutex_);
  std::set<uint64_t> alive_ MK_GUARDED_BY(mutex_);  // wrapped and not yet unloaded
  bool ending_ MK_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_GENERATION_IMPL_H_
