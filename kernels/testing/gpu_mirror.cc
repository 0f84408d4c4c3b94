#include "kernels/testing/gpu_mirror.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/device/open_device.h"
#include "kernels/device/emulated.h"

namespace mk::testing {
namespace {

constexpr char kVariable[] = "MK_OP_DEVICE";
constexpr char kGuard = 0x5a;

uint64_t Number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

bool IsGuard(const char* bytes) {
  return std::all_of(bytes, bytes + GpuMirror::kGuardBytes, [](char b) { return b == kGuard; });
}

}  // namespace

bool GpuMirror::Asked() {
  const char* name = std::getenv(kVariable);
  return name != nullptr && *name != '\0' && std::strcmp(name, "emulated") != 0;
}

absl::StatusOr<std::unique_ptr<GpuMirror>> GpuMirror::FromEnvironment() {
  if (!Asked()) return nullptr;
  OpenDeviceOptions options;
  options.name = std::getenv(kVariable);
  MK_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, OpenDevice(options));
  return Create(std::move(device));
}

absl::StatusOr<std::unique_ptr<GpuMirror>> GpuMirror::Create(std::unique_ptr<Device> device) {
  if (device->facts().kind != "cuda") {
    return absl::InvalidArgumentError(absl::StrCat("MK_OP_DEVICE: a device of kind \"",
                                                   device->facts().kind,
                                                   "\" runs no kernels; \"cuda\" and \"emulated\" "
                                                   "do"));
  }
  MK_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device->NewStream());
  return std::unique_ptr<GpuMirror>(new GpuMirror(std::move(device), std::move(stream)));
}

absl::StatusOr<Module*> GpuMirror::Load(const std::string& name,
                                        absl::Span<const mk_kernel_image> images) {
  MK_ASSIGN_OR_RETURN(LoadedImages loaded, LoadImages(*device_, name, images));
  modules_.push_back(std::move(loaded));
  return modules_.back().module.get();
}

absl::StatusOr<std::vector<GpuMirror::Carried>> GpuMirror::CarryThere(emu::DeviceMemory& memory) {
  std::vector<Carried> carried;
  std::string bytes;
  for (emu::Buffer* buffer : memory.Buffers()) {
    bytes.assign(buffer->bytes + 2 * kGuardBytes, kGuard);
    std::memcpy(&bytes[kGuardBytes], buffer->host, buffer->bytes);
    MK_ASSIGN_OR_RETURN(std::unique_ptr<DeviceBuffer> there, device_->Allocate(bytes.size()));
    MK_RETURN_IF_ERROR(device_->CopyToDevice(*stream_, there->data(), bytes.data(), bytes.size()));
    carried.push_back({buffer, std::move(there)});
  }
  return carried;
}

absl::Status GpuMirror::CarryBack(const std::vector<Carried>& carried, const std::string& kernel) {
  std::string bytes;
  for (const Carried& one : carried) {
    emu::Buffer& buffer = *one.buffer;
    bytes.resize(buffer.bytes + 2 * kGuardBytes);
    MK_RETURN_IF_ERROR(device_->CopyToHost(*stream_, &bytes[0], one.there->data(), bytes.size()));
    MK_RETURN_IF_ERROR(stream_->Synchronize());
    if (!IsGuard(&bytes[0]) || !IsGuard(&bytes[kGuardBytes + buffer.bytes])) {
      return absl::InternalError(absl::StrCat(kernel, ": stored beside the ", buffer.bytes,
                                              " bytes of \"", buffer.name, "\""));
    }
    if (std::memcmp(buffer.host, &bytes[kGuardBytes], buffer.bytes) == 0) continue;
    if (buffer.read_only) {
      return absl::InternalError(
          absl::StrCat(kernel, ": stored into \"", buffer.name, "\", which is frozen"));
    }
    std::memcpy(buffer.host, &bytes[kGuardBytes], buffer.bytes);
  }
  return absl::OkStatus();
}

absl::Status GpuMirror::Launch(DeviceKernel& kernel, const LaunchDims& dims, const void* params,
                               uint64_t params_size_bytes, emu::DeviceMemory& memory) {
  MK_ASSIGN_OR_RETURN(const std::vector<Carried> carried, CarryThere(memory));
  std::vector<uint64_t> words((params_size_bytes + 7) / 8);
  std::memcpy(words.data(), params, params_size_bytes);
  for (uint64_t& word : words) {
    if ((word & emu::kTagMask) != emu::kGlobalTag) continue;
    const uint64_t host = word & ~emu::kTagMask;
    for (const Carried& one : carried) {
      const uint64_t offset = host - Number(one.buffer->host);
      if (offset >= one.buffer->bytes) continue;
      word = Number(one.there->data()) + kGuardBytes + offset;
      break;
    }
  }
  MK_RETURN_IF_ERROR(device_->Launch(*stream_, kernel, dims, words.data(), params_size_bytes));
  MK_RETURN_IF_ERROR(stream_->Synchronize());
  return CarryBack(carried, kernel.name());
}

}  // namespace mk::testing
