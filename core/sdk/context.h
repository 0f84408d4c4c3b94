// What packs and kernels see of the host, as C++: `Host` for the services that live as long as a
// model, `Context` for one run. Thin, header-only wrappers over core/abi/mk_pack.h; both are views
// and own nothing.
#ifndef MERGEKERNEL_CORE_SDK_CONTEXT_H_
#define MERGEKERNEL_CORE_SDK_CONTEXT_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/abi/mk_pack.h"
#include "core/sdk/status.h"

namespace mk {

// Blocks of a grid, or threads of a block.
struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

// What one launch moves and computes, by its op's formula: for plans and predictions.
struct LaunchCost {
  uint64_t bytes = 0;         // from and to device memory, each operand once
  uint64_t flops = 0;         // on the ordinary units; a multiply-add is 2
  uint64_t tensor_flops = 0;  // on tensor cores
};

// A kernel that takes one Params by value. A copyable handle; valid as long as the model.
template <typename Params>
struct Kernel {
  // Parameters are copied as bytes, to a device that runs no constructor.
  static_assert(std::is_trivially_copyable_v<Params> && std::is_standard_layout_v<Params>);
  static_assert(sizeof(Params) <= 4096, "the most that a launch can carry on every GPU");
  mk_kernel* handle = nullptr;
};

enum class DeviceKind { kCpu, kCuda, kEmulated, kPlanning };

// The services of a model's host. Copyable view; valid while the model lives. `Open` refuses a host
// that lacks a service every pack may count on (log, files, weights, parallel, blas); `image` may
// be absent.
class Host {
 public:
  static Result<Host> Open(const mk_host* host) {
    Host h;
    h.host_ = host;
    h.log_ = Find<mk_log_service>(host, MK_SERVICE_LOG);
    h.files_ = Find<mk_files_service>(host, MK_SERVICE_FILES);
    h.weights_ = Find<mk_weights_service>(host, MK_SERVICE_WEIGHTS, MK_WEIGHTS_SERVICE_SIZE_1_0);
    h.parallel_ = Find<mk_parallel_service>(host, MK_SERVICE_PARALLEL);
    h.blas_ = Find<mk_blas_service>(host, MK_SERVICE_BLAS);
    h.image_ = Find<mk_image_service>(host, MK_SERVICE_IMAGE);
    h.kernels_ = Find<mk_kernels_service>(host, MK_SERVICE_KERNELS);
    h.device_facts_ = Find<mk_device_service>(host, MK_SERVICE_DEVICE);
    if (!h.log_ || !h.files_ || !h.weights_ || !h.parallel_ || !h.blas_) {
      return FailedPrecondition(
          "host lacks one of mk.log/1 mk.files/1 mk.weights/1 mk.parallel/1 mk.blas/1");
    }
    const std::string_view device = host->device;
    h.kind_ = device == "cuda"       ? DeviceKind::kCuda
              : device == "emulated" ? DeviceKind::kEmulated
              : device == "planning" ? DeviceKind::kPlanning
                                     : DeviceKind::kCpu;
    return h;
  }

  DeviceKind device() const { return kind_; }

  void Log(int level, std::string_view message) const {
    log_->write(log_->self, level, message.data(), message.size());
  }

  // The manifest's parameter `key`, or `fallback`.
  std::string Parameter(const char* key, std::string_view fallback = "") const {
    const char* value = files_->parameter(files_->self, key);
    return value ? std::string(value) : std::string(fallback);
  }

  // A small file of the pack, valid until `create` returns. Only during describe and create.
  Result<std::string_view> File(const char* name) const {
    const void* data = nullptr;
    mk_u64 size = 0;
    if (mk_status s = files_->read(files_->self, name, &data, &size)) {
      return Status(s, std::string("file ") + name + " is not in the manifest");
    }
    return std::string_view(static_cast<const char*>(data), size);
  }

  // Zeroed device memory of the weights region, 64-byte aligned. Only during create. The host keeps
  // the message.
  Result<void*> AllocateWeights(uint64_t size_bytes) const {
    void* data = nullptr;
    if (mk_status s = weights_->allocate(weights_->self, size_bytes, &data)) return Status(s, "");
    return data;
  }

  // Fills all of `weights` from `file`; see mk_weights_service.load. An empty message: the host has
  // set its own.
  Status LoadWeights(const char* file, std::vector<mk_weight>& weights) const {
    if (mk_status s = weights_->load(weights_->self, file, weights.data(), weights.size()))
      return {s, ""};
    return Ok();
  }

  // Copies host memory into weights memory and waits. Needs a host of 1.1.
  Status UploadWeights(void* device, const void* host, uint64_t size_bytes) const {
    if (weights_->struct_size < sizeof(mk_weights_service)) {
      return FailedPrecondition("host lacks the upload of mk.weights/1 (ABI 1.1)");
    }
    if (mk_status s = weights_->upload(weights_->self, device, host, size_bytes)) return {s, ""};
    return Ok();
  }

  // Loads device code: the best of `images` for this device. Only during create.
  Result<mk_module*> LoadModule(const char* name,
                                const std::vector<mk_kernel_image>& images) const {
    if (!kernels_) return Unimplemented("host offers no mk.kernels/1: nothing to launch on");
    mk_module* module = nullptr;
    if (mk_status s = kernels_->load(kernels_->self, name, images.data(), images.size(), &module)) {
      return Status(s, "");
    }
    return module;
  }
  // The same of what the build rule cuda_kernels makes: `name`, `images`, `image_count`, and per
  // image `kind`, `sm`, `least_driver`, `data`, `bytes`.
  template <typename BuiltModule>
  Result<mk_module*> LoadModule(const BuiltModule& built) const {
    std::vector<mk_kernel_image> images;
    for (uint32_t i = 0; i < built.image_count; ++i) {
      const auto& image = built.images[i];
      images.push_back({static_cast<mk_image_kind>(image.kind), image.sm, image.least_driver, 0,
                        image.data, image.bytes});
    }
    return LoadModule(built.name, images);
  }
  // REQUIRES that the device function `name` takes one Params by value.
  template <typename Params>
  Result<Kernel<Params>> FindKernel(mk_module* module, const char* name) const {
    Kernel<Params> kernel;
    if (mk_status s = kernels_->kernel(kernels_->self, module, name, &kernel.handle)) {
      return Status(s, "");
    }
    return kernel;
  }

  // Calls body(begin, end) over disjoint ranges covering [0, count); the caller takes part. `body`
  // must not throw.
  template <typename Body>
  void ParallelFor(int64_t count, int64_t grain, Body&& body) const {
    using Plain = std::remove_reference_t<Body>;
    parallel_->parallel_for(
        parallel_->self, count, grain,
        [](void* arg, mk_i64 begin, mk_i64 end) { (*static_cast<Plain*>(arg))(begin, end); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }
  int64_t threads() const { return parallel_->threads(parallel_->self); }

  Status Sgemm(const mk_sgemm_args& args) const {
    if (mk_status s = blas_->sgemm(blas_->self, &args)) {
      return {s, "sgemm failed for m " + std::to_string(args.m) + " n " + std::to_string(args.n) +
                     " k " + std::to_string(args.k)};
    }
    return Ok();
  }

  // Null on the CPU device, and where the host is older than 1.2.
  const mk_device_service* device_facts() const { return device_facts_; }

  // Null where the host decodes no images.
  const mk_image_service* image() const { return image_; }

 private:
  // `least_bytes`: of the table, where a host of an older minor version serves too.
  template <typename Service>
  static const Service* Find(const mk_host* host, const char* id,
                             uint32_t least_bytes = sizeof(Service)) {
    const auto* service = static_cast<const Service*>(host->service(host->self, id));
    return service && service->struct_size >= least_bytes ? service : nullptr;
  }

  const mk_host* host_ = nullptr;
  const mk_log_service* log_ = nullptr;
  const mk_files_service* files_ = nullptr;
  const mk_weights_service* weights_ = nullptr;
  const mk_parallel_service* parallel_ = nullptr;
  const mk_blas_service* blas_ = nullptr;
  const mk_image_service* image_ = nullptr;
  const mk_kernels_service* kernels_ = nullptr;
  const mk_device_service* device_facts_ = nullptr;
  DeviceKind kind_ = DeviceKind::kCpu;
};

// One run: its request, its outputs, its scratch, and the host's services. Lives on the stack of
// `run`; used only on that thread, but for ParallelFor bodies, which may call Sgemm.
class Context {
 public:
  Context(const Host& host, const mk_run& run) : host_(host), run_(run) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Host& host() const { return host_; }
  DeviceKind device() const { return host_.device(); }

  // The input `name`, or null when the request left it out.
  const mk_tensor* Input(std::string_view name) const {
    for (uint32_t i = 0; i < run_.input_count; ++i) {
      if (name == run_.inputs[i].name) return &run_.inputs[i];
    }
    return nullptr;
  }

  // Memory for output `name`; REQUIRES the size of shape x dtype (or the packed size for BYTES).
  Result<void*> Output(const char* name, mk_dtype dtype, const std::vector<int64_t>& shape,
                       uint64_t size_bytes) {
    void* data = nullptr;
    mk_status s = run_.output(run_.self, name, dtype, static_cast<uint32_t>(shape.size()),
                              shape.data(), size_bytes, &data);
    if (s) return Status(s, "");
    return data;
  }

  // `count` elements of T from the lane's scratch, 64-byte aligned, not zeroed. The message stays
  // with the host.
  template <typename T>
  Result<T*> Scratch(int64_t count) {
    void* data = nullptr;
    if (count < 0 || static_cast<uint64_t>(count) > UINT64_MAX / sizeof(T)) {
      return InvalidArgument("scratch of " + std::to_string(count) + " elements");
    }
    if (mk_status s = run_.scratch(run_.self, static_cast<uint64_t>(count) * sizeof(T), &data))
      return Status(s, "");
    return static_cast<T*>(data);
  }
  uint64_t ScratchMark() const { return run_.scratch_mark(run_.self); }
  void ScratchRelease(uint64_t mark) const { run_.scratch_release(run_.self, mark); }

  bool cancelled() const { return run_.cancelled(run_.self) != 0; }
  uint64_t now_ns() const { return run_.now_ns(run_.self); }

  // Request parameters; false when absent or of another type.
  bool Parameter(const char* key, int64_t* value) const {
    return run_.parameter_int64(run_.self, key, value) != 0;
  }
  bool Parameter(const char* key, double* value) const {
    return run_.parameter_double(run_.self, key, value) != 0;
  }
  bool Parameter(const char* key, std::string_view* value) const {
    const char* text = nullptr;
    mk_u64 size = 0;
    if (!run_.parameter_string(run_.self, key, &text, &size)) return false;
    *value = std::string_view(text, size);
    return true;
  }

  // Starts a kernel in the order of this run and does not wait. Not on the CPU device. Needs a host
  // of 1.1, as do the copies.
  template <typename Params>
  Status Launch(const Kernel<Params>& kernel, const Dim3& grid, const Dim3& block,
                uint32_t shared_bytes, const Params& params, const LaunchCost& cost) {
    MK_TRY(CheckHost());
    const mk_launch launch = {sizeof(mk_launch),
                              shared_bytes,
                              {grid.x, grid.y, grid.z},
                              {block.x, block.y, block.z},
                              &params,
                              sizeof(Params),
                              cost.bytes,
                              cost.flops,
                              cost.tensor_flops};
    if (mk_status s = run_.launch(run_.self, kernel.handle, &launch)) return {s, ""};
    return Ok();
  }
  // Waits until all before it is done. A run that calls it is never replayed as a graph.
  Status CopyToHost(void* host, const void* device, uint64_t size_bytes) {
    MK_TRY(CheckHost());
    if (mk_status s = run_.copy_to_host(run_.self, host, device, size_bytes)) return {s, ""};
    return Ok();
  }
  Status CopyToDevice(void* device, const void* host, uint64_t size_bytes) {
    MK_TRY(CheckHost());
    if (mk_status s = run_.copy_to_device(run_.self, device, host, size_bytes)) return {s, ""};
    return Ok();
  }

  template <typename Body>
  void ParallelFor(int64_t count, int64_t grain, Body&& body) const {
    host_.ParallelFor(count, grain, body);
  }
  Status Sgemm(const mk_sgemm_args& args) const { return host_.Sgemm(args); }

 private:
  Status CheckHost() const {
    return run_.struct_size >= sizeof(mk_run)
               ? Ok()
               : FailedPrecondition("host cannot launch: its ABI is older than 1.1");
  }

  const Host& host_;
  const mk_run& run_;
};

// Gives back, at the end of its block, the scratch taken since its construction.
class ScratchScope {
 public:
  explicit ScratchScope(const Context& context) : context_(context), mark_(context.ScratchMark()) {}
  ~ScratchScope() { context_.ScratchRelease(mark_); }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

 private:
  const Context& context_;
  const uint64_t mark_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_SDK_CONTEXT_H_
