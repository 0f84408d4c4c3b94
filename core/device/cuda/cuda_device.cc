#include "core/device/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/meminfo.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/device/cuda/chunk_pool.h"
#include "core/device/cuda/context.h"
#include "core/device/cuda/module.h"
#include "core/device/cuda/stream.h"

namespace mk {
namespace {

constexpr size_t kCanaryBytes = 256;

cu::DevicePtr AddressOf(const void* device) { return reinterpret_cast<cu::DevicePtr>(device); }

class CudaBuffer : public DeviceBuffer {
 public:
  CudaBuffer(ChunkPool& pool, const ChunkPool::Piece& piece) : pool_(pool), piece_(piece) {}
  ~CudaBuffer() override { pool_.GiveBack(piece_); }
  void* data() override { return reinterpret_cast<void*>(piece_.address); }
  uint64_t size_bytes() const override { return piece_.size_bytes; }

 private:
  ChunkPool& pool_;
  const ChunkPool::Piece piece_;
};

class CudaDevice : public Device {
 public:
  static absl::StatusOr<std::unique_ptr<Device>> Create(const CudaOptions& options);

  const DeviceFacts& facts() const override { return facts_; }
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(uint64_t size_bytes) override;
  uint64_t in_use_bytes() const override { return pool_->taken_bytes(); }
  uint64_t free_bytes() const override;

  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override {
    MK_ASSIGN_OR_RETURN(auto stream, CudaStream::Create(*context_, slot_bytes_));
    return std::unique_ptr<Stream>(std::move(stream));
  }
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override {
    MK_ASSIGN_OR_RETURN(auto event, CudaEvent::Create(*context_, cu::kEventDefault));
    return std::unique_ptr<Event>(std::move(event));
  }

  absl::Status CopyToDevice(Stream& stream, void* device, const void* host,
                            uint64_t size) override {
    return static_cast<CudaStream&>(stream).CopyToDevice(AddressOf(device), host, size);
  }
  absl::Status CopyToHost(Stream& stream, void* host, const void* device, uint64_t size) override {
    return static_cast<CudaStream&>(stream).CopyToHost(host, AddressOf(device), size);
  }

  absl::StatusOr<std::unique_ptr<Module>> LoadModule(const mk_kernel_image& image) override {
    MK_ASSIGN_OR_RETURN(
        auto module,
        CudaModule::Load(*context_, image, static_cast<int>(facts_.shared_bytes_per_block)));
    return std::unique_ptr<Module>(std::move(module));
  }
  absl::Status Launch(Stream& stream, DeviceKernel& kernel, const LaunchDims& dims,
                      const void* params, uint64_t params_size_bytes) override;

  absl::Status Canary() override MK_EXCLUDES(service_mutex_);
  absl::Status lost() const override { return context_->lost(); }

 private:
  CudaDevice() = default;
  absl::Status ReadFacts(uint64_t budget_bytes);
  absl::Status ReadName();

  uint64_t slot_bytes_ = 0;
  std::function<uint64_t()> mem_available_;
  DeviceFacts facts_;
  std::unique_ptr<CudaContext> context_;
  std::unique_ptr<ChunkPool> pool_;
  std::unique_ptr<DeviceBuffer> canary_memory_;
  // For what belongs to no lane: zeroing new buffers, the canary.
  Mutex service_mutex_;
  std::unique_ptr<CudaStream> service_ MK_GUARDED_BY(service_mutex_);
};

absl::StatusOr<std::unique_ptr<Device>> CudaDevice::Create(const CudaOptions& options) {
  MK_ASSIGN_OR_RETURN(std::shared_ptr<const Driver> driver, OpenDriver(options.library));
  auto device = std::unique_ptr<CudaDevice>(new CudaDevice());
  device->slot_bytes_ = options.staging_slot_bytes;
  device->mem_available_ = options.mem_available;
  if (!device->mem_available_) {
    device->mem_available_ = [] { return MemInfoBytes("MemAvailable"); };
  }
  MK_ASSIGN_OR_RETURN(device->context_, CudaContext::Create(std::move(driver), options.ordinal,
                                                            {options.on_lost, options.log}));
  MK_RETURN_IF_ERROR(device->ReadFacts(options.budget_bytes));
  std::function<uint64_t()> available = [] { return uint64_t{0}; };
  // Elsewhere the driver's own refusal is right, and what it calls free is not only ours.
  if (device->facts_.integrated) available = device->mem_available_;
  device->pool_ = std::make_unique<ChunkPool>(*device->context_, device->facts_.budget_bytes,
                                              std::move(available));
  {
    MutexLock lock(device->service_mutex_);
    MK_ASSIGN_OR_RETURN(
        device->service_,
        CudaStream::Create(*device->context_, std::max<uint64_t>(kCanaryBytes, 4096)));
  }
  MK_ASSIGN_OR_RETURN(device->canary_memory_, device->Allocate(kCanaryBytes));
  return std::unique_ptr<Device>(std::move(device));
}

absl::Status CudaDevice::ReadName() {
  char name[256] = "";
  MK_RETURN_IF_ERROR(
      MK_CUDA(*context_, DeviceGetName, name, static_cast<int>(sizeof name), context_->device()));
  facts_.name.assign(name, strnlen(name, sizeof name));
  return absl::OkStatus();
}

absl::Status CudaDevice::ReadFacts(uint64_t budget_bytes) {
  facts_.kind = "cuda";
  facts_.host_addressable = false;
  facts_.driver_version = context_->driver().version;
  MK_RETURN_IF_ERROR(ReadName());
  MK_ASSIGN_OR_RETURN(const int major, context_->Attribute(cu::kComputeCapabilityMajor));
  MK_ASSIGN_OR_RETURN(const int minor, context_->Attribute(cu::kComputeCapabilityMinor));
  facts_.sm = major * 10 + minor;
  MK_ASSIGN_OR_RETURN(const int integrated, context_->Attribute(cu::kIntegrated));
  facts_.integrated = integrated != 0;
  MK_ASSIGN_OR_RETURN(facts_.compute_units, context_->Attribute(cu::kMultiprocessorCount));
  MK_ASSIGN_OR_RETURN(facts_.l2_bytes, context_->Attribute(cu::kL2CacheBytes));
  MK_ASSIGN_OR_RETURN(facts_.shared_bytes_per_unit,
                      context_->Attribute(cu::kMaxSharedPerMultiprocessor));
  MK_ASSIGN_OR_RETURN(facts_.shared_bytes_per_block,
                      context_->Attribute(cu::kMaxSharedPerBlockOptin));
  MK_ASSIGN_OR_RETURN(facts_.clock_khz, context_->Attribute(cu::kClockRateKhz));
  MK_ASSIGN_OR_RETURN(facts_.memory_clock_khz, context_->Attribute(cu::kMemoryClockRateKhz));
  facts_.budget_bytes = budget_bytes;
  if (budget_bytes != 0) return absl::OkStatus();
  const uint64_t free = free_bytes();
  if (free == 0) {
    return absl::FailedPreconditionError(
        "free device memory cannot be read; set the device's budget in bytes");
  }
  facts_.budget_bytes = free / 10 * 9;
  return absl::OkStatus();
}

// On a board the driver counts caches as taken, so its "free" is far too little.
uint64_t CudaDevice::free_bytes() const {
  if (facts_.integrated) return mem_available_();
  size_t free = 0, total = 0;
  if (!MK_CUDA(*context_, MemGetInfo, &free, &total).ok()) return 0;
  return free;
}

absl::StatusOr<std::unique_ptr<DeviceBuffer>> CudaDevice::Allocate(uint64_t size_bytes) {
  MK_ASSIGN_OR_RETURN(const ChunkPool::Piece piece, pool_->Take(size_bytes));
  auto buffer = std::make_unique<CudaBuffer>(*pool_, piece);
  if (size_bytes == 0) return std::unique_ptr<DeviceBuffer>(std::move(buffer));
  MutexLock lock(service_mutex_);
  MK_RETURN_IF_ERROR(MK_CUDA(*context_, MemsetD8Async, piece.address, static_cast<unsigned char>(0),
                             static_cast<size_t>(size_bytes), service_->handle()));
  MK_RETURN_IF_ERROR(service_->Synchronize());
  return std::unique_ptr<DeviceBuffer>(std::move(buffer));
}

absl::Status CudaDevice::Launch(Stream& stream, DeviceKernel& kernel, const LaunchDims& dims,
                                const void* params, uint64_t params_size_bytes) {
  const auto& cuda_kernel = static_cast<const CudaKernel&>(kernel);
  MK_RETURN_IF_ERROR(cuda_kernel.Check(dims, params_size_bytes));
  // As a buffer and not as a list of parameters: so the driver is told the size, and refuses one
  // that is not the kernel's.
  size_t size = params_size_bytes;
  void* extra[] = {cu::LaunchParamBuffer(), const_cast<void*>(params), cu::LaunchParamBufferSize(),
                   &size, cu::kLaunchParamEnd};
  const absl::Status status =
      MK_CUDA(*context_, LaunchKernel, cuda_kernel.function(), dims.grid[0], dims.grid[1],
              dims.grid[2], dims.block[0], dims.block[1], dims.block[2], dims.shared_bytes,
              static_cast<CudaStream&>(stream).handle(), static_cast<void**>(nullptr),
              static_cast<void**>(extra));
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("launch of '", kernel.name(), "': ", status.message()));
}

// A copy there, a fill, a copy back: both copy engines and the cores have to answer.
absl::Status CudaDevice::Canary() {
  MutexLock lock(service_mutex_);
  unsigned char sent[kCanaryBytes], got[kCanaryBytes] = {};
  for (size_t i = 0; i < kCanaryBytes; ++i) sent[i] = static_cast<unsigned char>(i * 7 + 3);
  const cu::DevicePtr memory = AddressOf(canary_memory_->data());
  constexpr size_t kHalf = kCanaryBytes / 2;
  constexpr unsigned char kFill = 0xA5;
  MK_RETURN_IF_ERROR(service_->CopyToDevice(memory, sent, sizeof sent));
  MK_RETURN_IF_ERROR(
      MK_CUDA(*context_, MemsetD8Async, memory + kHalf, kFill, kHalf, service_->handle()));
  MK_RETURN_IF_ERROR(service_->CopyToHost(got, memory, sizeof got));
  MK_RETURN_IF_ERROR(service_->Synchronize());
  for (size_t i = 0; i < kCanaryBytes; ++i) {
    const unsigned want = i < kHalf ? sent[i] : kFill;
    if (got[i] != want) {
      return absl::InternalError(absl::StrCat("canary: byte ", i, " is ", got[i], ", not ", want));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(const CudaOptions& options) {
  return CudaDevice::Create(options);
}

}  // namespace mk
