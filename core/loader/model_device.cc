#include "core/loader/model_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/device/images.h"

namespace mk {
namespace {

constexpr size_t kMostImages = 64;  // of one module; more is a slip of the pack

}  // namespace

absl::StatusOr<void*> ModelDevice::Allocate(uint64_t size_bytes) {
  MK_RETURN_IF_ERROR(memory_.Charge(Region::kWeights, size_bytes));
  auto buffer = device_.Allocate(size_bytes);
  if (!buffer.ok()) {
    memory_.Release(Region::kWeights, size_bytes);
    return buffer.status();
  }
  buffers_.push_back(*std::move(buffer));
  return buffers_.back()->data();
}

absl::Status ModelDevice::Upload(void* device, const void* host, uint64_t size_bytes) {
  if (stream_ == nullptr) {
    MK_ASSIGN_OR_RETURN(stream_, device_.NewStream());
  }
  return device_.CopyToDevice(*stream_, device, host, size_bytes);
}

absl::Status ModelDevice::Wait() {
  return stream_ == nullptr ? absl::OkStatus() : stream_->Synchronize();
}

absl::StatusOr<Module*> ModelDevice::LoadModule(const std::string& name,
                                                absl::Span<const mk_kernel_image> images) {
  const std::string shown = Printable(name, 80);
  if (images.size() > kMostImages) {
    return absl::InvalidArgumentError(absl::StrCat("module '", shown, "': ", images.size(),
                                                   " images, the limit is ", kMostImages));
  }
  MK_ASSIGN_OR_RETURN(LoadedImages loaded, LoadImages(device_, shown, images));
  log_(1, absl::StrCat(
              "module '", shown, "': ", ImageText(images[loaded.image]),
              loaded.notes.empty() ? "" : "; not taken: ", absl::StrJoin(loaded.notes, "; ")));
  modules_.push_back({shown, std::move(loaded.module)});
  return modules_.back().module.get();
}

absl::StatusOr<DeviceKernel*> ModelDevice::FindKernel(Module* module, const std::string& name) {
  for (const Loaded& loaded : modules_) {
    if (loaded.module.get() != module) continue;
    auto kernel = module->Find(name);
    if (kernel.ok()) return kernel;
    return absl::Status(kernel.status().code(),
                        absl::StrCat("module '", loaded.name, "': ", kernel.status().message()));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("kernel '", Printable(name, 80), "': its module is none of this model's"));
}

void ModelDevice::Release() {
  modules_.clear();
  stream_.reset();
  for (auto& buffer : buffers_) memory_.Release(Region::kWeights, buffer->size_bytes());
  buffers_.clear();
}

}  // namespace mk
