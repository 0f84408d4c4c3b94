// Device code of one pack in the driver: a module from one image, and its kernels.
#ifndef MERGEKERNEL_CORE_DEVICE_CUDA_MODULE_H_
#define MERGEKERNEL_CORE_DEVICE_CUDA_MODULE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/device/cuda/context.h"
#include "core/device/device.h"

namespace mk {

class CudaKernel : public DeviceKernel {
 public:
  const std::string& name() const override { return name_; }
  // INTERNAL naming the kernel, the value and the bound.
  absl::Status Check(const LaunchDims& dims, uint64_t params_size_bytes) const;
  cu::Function function() const { return function_; }

 private:
  friend class CudaModule;
  std::string name_;
  cu::Function function_ = nullptr;
  int most_threads_ = 0;         // per block, by its registers
  int most_dynamic_shared_ = 0;  // bytes
};

// Any thread.
class CudaModule : public Module {
 public:
  // `shared_per_block`: what a block may opt into.
  static absl::StatusOr<std::unique_ptr<CudaModule>> Load(CudaContext& context,
                                                          const mk_kernel_image& image,
                                                          int shared_per_block);
  ~CudaModule() override { MK_CUDA_RELEASE(context_, ModuleUnload, module_); }
  absl::StatusOr<DeviceKernel*> Find(const std::string& name) override MK_EXCLUDES(mutex_);

 private:
  CudaModule(CudaContext& context, cu::Module module, int shared_per_block)
      : context_(context), module_(module), shared_per_block_(shared_per_block) {}
  absl::Status Prepare(CudaKernel& kernel);

  CudaContext& context_;
  const cu::Module module_;
  const int shared_per_block_;
  Mutex mutex_;
  std::map<std::string, std::unique_ptr<CudaKernel>> kernels_ MK_GUARDED_BY(mutex_);
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_CUDA_MODULE_H_
