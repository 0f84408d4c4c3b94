#include "core/device/cuda/module.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace mk {
namespace {

constexpr uint64_t kMostParamsBytes = 4096;  // of a kernel, on every driver and SM we speak of
constexpr uint32_t kMostGridYZ = 65535;
constexpr size_t kJitLogBytes = 8192;

// The size as a JIT option's value: an integer in the place of a pointer.
void* OptionValue(size_t value) { return reinterpret_cast<void*>(value); }

absl::Status CheckImage(const mk_kernel_image& image) {
  if (image.kind != MK_IMAGE_CUBIN && image.kind != MK_IMAGE_PTX) {
    return absl::InvalidArgumentError(
        absl::StrCat("cuda: image of kind ", image.kind, ", must be a cubin or PTX"));
  }
  const auto* text = static_cast<const char*>(image.data);
  if (text == nullptr || image.size_bytes == 0) {
    return absl::InvalidArgumentError("cuda: the image is empty");
  }
  // The driver is told no size: it reads PTX up to a NUL.
  if (image.kind == MK_IMAGE_PTX && text[image.size_bytes - 1] != '\0') {
    return absl::InvalidArgumentError("cuda: PTX does not end in NUL");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CudaKernel::Check(const LaunchDims& dims, uint64_t params_size_bytes) const {
  const auto wrong = [this](const auto&... parts) {
    return absl::InternalError(absl::StrCat("launch of '", name_, "': ", parts...));
  };
  for (int i = 0; i < 3; ++i) {
    if (dims.grid[i] == 0 || dims.block[i] == 0) {
      return wrong("dim ", i, " of grid ", dims.grid[i], " and block ", dims.block[i],
                   " must not be 0");
    }
  }
  if (dims.grid[0] > INT32_MAX) return wrong("grid x ", dims.grid[0], " > ", INT32_MAX);
  if (dims.grid[1] > kMostGridYZ || dims.grid[2] > kMostGridYZ) {
    return wrong("grid y ", dims.grid[1], ", z ", dims.grid[2], " > ", kMostGridYZ);
  }
  const unsigned __int128 threads =
      static_cast<unsigned __int128>(dims.block[0]) * dims.block[1] * dims.block[2];
  if (threads > static_cast<unsigned>(most_threads_)) {
    return wrong("block ", dims.block[0], " x ", dims.block[1], " x ", dims.block[2], " > ",
                 most_threads_, " threads");
  }
  if (dims.shared_bytes > static_cast<uint32_t>(most_dynamic_shared_)) {
    return wrong("shared_bytes ", dims.shared_bytes, " > ", most_dynamic_shared_);
  }
  if (params_size_bytes > kMostParamsBytes) {
    return wrong("params ", params_size_bytes, " bytes > ", kMostParamsBytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CudaModule>> CudaModule::Load(CudaContext& context,
                                                             const mk_kernel_image& image,
                                                             int shared_per_block) {
  MK_RETURN_IF_ERROR(CheckImage(image));
  std::vector<char> log(kJitLogBytes, '\0');
  int options[] = {cu::kJitErrorLogBuffer, cu::kJitErrorLogBufferBytes};
  void* values[] = {log.data(), OptionValue(log.size())};
  cu::Module module = nullptr;
  const absl::Status status =
      MK_CUDA(context, ModuleLoadDataEx, &module, image.data, 2U, options, values);
  if (!status.ok()) {
    const std::string words(log.data(), strnlen(log.data(), log.size()));
    if (words.empty()) return status;
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), "; log: ", Printable(words, 1000)));
  }
  return std::unique_ptr<CudaModule>(new CudaModule(context, module, shared_per_block));
}

absl::StatusOr<DeviceKernel*> CudaModule::Find(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = kernels_.find(name);
  if (found != kernels_.end()) return static_cast<DeviceKernel*>(found->second.get());
  auto kernel = std::make_unique<CudaKernel>();
  kernel->name_ = name;
  const absl::Status status =
      MK_CUDA(context_, ModuleGetFunction, &kernel->function_, module_, name.c_str());
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("kernel '", Printable(name), "': ", status.message()));
  }
  MK_RETURN_IF_ERROR(Prepare(*kernel));
  return static_cast<DeviceKernel*>((kernels_[name] = std::move(kernel)).get());
}

// All that a launch needs to know, and all that must be set, here: a run only launches.
absl::Status CudaModule::Prepare(CudaKernel& kernel) {
  int static_shared = 0;
  MK_RETURN_IF_ERROR(MK_CUDA(context_, FuncGetAttribute, &kernel.most_threads_,
                             cu::kFunctionMaxThreadsPerBlock, kernel.function_));
  MK_RETURN_IF_ERROR(MK_CUDA(context_, FuncGetAttribute, &static_shared, cu::kFunctionSharedBytes,
                             kernel.function_));
  kernel.most_dynamic_shared_ = shared_per_block_ - static_shared;
  return MK_CUDA(context_, FuncSetAttribute, kernel.function_, cu::kFunctionMaxDynamicSharedBytes,
                 kernel.most_dynamic_shared_);
}

}  // namespace mk
