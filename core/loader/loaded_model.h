// A pack's library with its model created: the host's side of `mk_host`, and what the model holds
// of the device. Used by the registry, and by the probe in its own process.
#ifndef MERGEKERNEL_CORE_LOADER_LOADED_MODEL_H_
#define MERGEKERNEL_CORE_LOADER_LOADED_MODEL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/device.h"
#include "core/device/host_services.h"
#include "core/device/memory_account.h"
#include "core/loader/pack_library.h"
#include "core/loader/sealed_pack.h"
#include "core/run/request.h"

namespace mk {

using LogFunction =
    std::function<void(int level, const std::string& message)>;  // 0 debug .. 3 error

// Create and the destructor: one thread at a time, not a lane's. The rest: any thread.
class LoadedModel {
 public:
  // Maps the library, asks its signature and compares it with the manifest's, and creates the
  // model. Any failure leaves nothing behind. `device` and `services` outlive the model.
  static absl::StatusOr<std::unique_ptr<LoadedModel>> Create(
      std::shared_ptr<const SealedPack> sealed, Device& device, const HostServices& services,
      LogFunction log);
  ~LoadedModel();

  // Destroys the model, gives its memory back, unmaps the library. OK, or INTERNAL naming what is
  // left: live bytes, or a mapping that could not be proven gone (`retired` is set then). Once;
  // after it nothing but the destructor may be called.
  absl::Status Unload(bool* retired);

  const SealedPack& sealed() const { return *sealed_; }
  const mk_pack& pack() const { return library_->entry(); }
  mk_model* model() const { return model_; }
  const Signature& signature() const { return signature_; }
  MemoryAccount& memory() { return memory_; }

 private:
  class Host;
  LoadedModel(std::shared_ptr<const SealedPack> sealed, Device& device);
  absl::Status Describe();

  const std::shared_ptr<const SealedPack> sealed_;
  const Signature signature_;
  MemoryAccount memory_;
  std::unique_ptr<PackLibrary> library_;
  std::unique_ptr<Host> host_;  // outlives the model
  mk_model* model_ = nullptr;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_LOADED_MODEL_H_
