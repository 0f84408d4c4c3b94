#include "core/device/planning/planning_device.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace mk {
namespace {

// Addresses begin where no process has memory, so that who follows one faults.
constexpr uint64_t kFirstAddress = uint64_t{0x0033} << 48;
constexpr uint64_t kAlign = 256;
constexpr uint32_t kMostThreads = 1024;
constexpr uint32_t kMostBlocksYZ = 65535;

struct Memory {
  std::atomic<uint64_t> in_use{0};
  std::atomic<uint64_t> peak{0};
};

class PlannedBuffer : public DeviceBuffer {
 public:
  PlannedBuffer(Memory& memory, uint64_t address, uint64_t size)
      : memory_(memory), address_(address), size_(size) {}
  ~PlannedBuffer() override { memory_.in_use -= size_; }
  void* data() override { return reinterpret_cast<void*>(address_); }
  uint64_t size_bytes() const override { return size_; }

 private:
  Memory& memory_;
  const uint64_t address_;
  const uint64_t size_;
};

class PlannedStream : public Stream {
 public:
  absl::Status Synchronize() override { return absl::OkStatus(); }
};

class PlannedKernel : public DeviceKernel {
 public:
  PlannedKernel(std::string name, std::optional<KernelResources> resources)
      : name_(std::move(name)), resources_(resources) {}
  const std::string& name() const override { return name_; }
  const std::optional<KernelResources>& resources() const { return resources_; }

 private:
  const std::string name_;
  const std::optional<KernelResources> resources_;
};

class PlannedModule : public Module {
 public:
  // `kernels` empty: the image does not tell, and any name is taken.
  explicit PlannedModule(std::optional<std::map<std::string, KernelResources>> kernels)
      : resources_(std::move(kernels)) {}

  absl::StatusOr<DeviceKernel*> Find(const std::string& name) override {
    const auto found = kernels_.find(name);
    if (found != kernels_.end()) return found->second.get();
    std::optional<KernelResources> resources;
    if (resources_) {
      const auto known = resources_->find(name);
      if (known == resources_->end()) {
        return absl::NotFoundError(absl::StrCat("no kernel '", name, "' in the image"));
      }
      resources = known->second;
    }
    auto& kernel = kernels_[name];
    kernel = std::make_unique<PlannedKernel>(name, resources);
    return kernel.get();
  }

 private:
  const std::optional<std::map<std::string, KernelResources>> resources_;
  std::map<std::string, std::unique_ptr<PlannedKernel>> kernels_;
};

class PlanningDeviceImpl : public PlanningDevice {
 public:
  PlanningDeviceImpl(const Board& board, uint64_t budget_bytes) : board_(board) {
    facts_.kind = "planning";
    facts_.name = board.title;
    facts_.budget_bytes = budget_bytes == 0 ? board.memory_bytes : budget_bytes;
    facts_.integrated = board.limits->sm != 90;
    facts_.compute_units = board.sm_count;
    facts_.host_addressable = false;
    facts_.sm = board.limits->sm;
    facts_.driver_version = INT_MAX;
    facts_.l2_bytes = board.l2_bytes;
    facts_.shared_bytes_per_unit = board.limits->shared_bytes;
    facts_.shared_bytes_per_block = board.limits->shared_bytes_per_block;
    facts_.clock_khz = static_cast<int>(board.clock_hz / 1000);
  }

  const DeviceFacts& facts() const override { return facts_; }

  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(uint64_t size) override {
    const uint64_t in_use = memory_.in_use;
    if (size > facts_.budget_bytes || in_use > facts_.budget_bytes - size) {
      return absl::ResourceExhaustedError(
          absl::StrCat("planning for ", facts_.name, ": ", size, " bytes asked for, ", in_use,
                       " in use, the budget is ", facts_.budget_bytes));
    }
    const uint64_t address = next_;
    next_ += std::max<uint64_t>(1, (size + kAlign - 1) / kAlign) * kAlign;
    memory_.in_use += size;
    memory_.peak = std::max<uint64_t>(memory_.peak, memory_.in_use);
    return std::unique_ptr<DeviceBuffer>(std::make_unique<PlannedBuffer>(memory_, address, size));
  }
  uint64_t in_use_bytes() const override { return memory_.in_use; }
  uint64_t free_bytes() const override { return facts_.budget_bytes - memory_.in_use; }

  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override {
    return std::unique_ptr<Stream>(std::make_unique<PlannedStream>());
  }

  absl::Status CopyToDevice(Stream&, void*, const void*, uint64_t size) override {
    to_device_ += size;
    return absl::OkStatus();
  }
  absl::Status CopyToHost(Stream&, void* host, const void*, uint64_t size) override {
    if (size != 0) std::memset(host, 0, size);
    to_host_ += size;
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Module>> LoadModule(const mk_kernel_image& image) override {
    std::optional<std::map<std::string, KernelResources>> kernels;
    if (image.kind == MK_IMAGE_CUBIN) {
      MK_ASSIGN_OR_RETURN(kernels,
                          ReadCubin({static_cast<const char*>(image.data), image.size_bytes}));
    }
    return std::unique_ptr<Module>(std::make_unique<PlannedModule>(std::move(kernels)));
  }

  absl::Status Launch(Stream&, DeviceKernel& kernel, const LaunchDims& dims, const void*,
                      uint64_t) override {
    MK_RETURN_IF_ERROR(Check(kernel, dims));
    launches_.push_back({kernel.name(), dims, static_cast<PlannedKernel&>(kernel).resources(),
                         watch_ ? watch_() : memory_.in_use.load()});
    return absl::OkStatus();
  }

  absl::Status Canary() override { return absl::OkStatus(); }

  const std::vector<PlannedLaunch>& launches() const override { return launches_; }
  uint64_t copied_to_device_bytes() const override { return to_device_; }
  uint64_t copied_to_host_bytes() const override { return to_host_; }
  uint64_t peak_bytes() const override { return memory_.peak; }
  const Board& board() const override { return board_; }
  void WatchMemory(std::function<uint64_t()> live_bytes) override {
    watch_ = std::move(live_bytes);
  }
  void Clear() override {
    launches_.clear();
    to_device_ = to_host_ = 0;
  }

 private:
  absl::Status Check(const DeviceKernel& kernel, const LaunchDims& d) const {
    const auto wrong = [&](auto&&... what) {
      return absl::InternalError(absl::StrCat("launch of ", kernel.name(), ": ", what...));
    };
    const uint64_t threads = uint64_t{d.block[0]} * d.block[1] * d.block[2];
    if (threads == 0 || d.block[0] > kMostThreads || d.block[1] > kMostThreads ||
        threads > kMostThreads) {
      return wrong(threads, " threads a block, 1 to ", kMostThreads, " are allowed");
    }
    if (d.grid[0] == 0 || d.grid[1] == 0 || d.grid[2] == 0 || d.grid[0] > INT_MAX ||
        d.grid[1] > kMostBlocksYZ || d.grid[2] > kMostBlocksYZ) {
      return wrong("grid ", d.grid[0], " x ", d.grid[1], " x ", d.grid[2], ", at most ", INT_MAX,
                   " x ", kMostBlocksYZ, " x ", kMostBlocksYZ, " and none of them 0");
    }
    const auto& resources = static_cast<const PlannedKernel&>(kernel).resources();
    const uint64_t shared = uint64_t{d.shared_bytes} + (resources ? resources->shared_bytes : 0);
    if (shared > facts_.shared_bytes_per_block) {
      return wrong(shared, " bytes of shared memory a block, at most ",
                   facts_.shared_bytes_per_block);
    }
    return absl::OkStatus();
  }

  const Board& board_;
  DeviceFacts facts_;
  Memory memory_;
  uint64_t next_ = kFirstAddress;
  uint64_t to_device_ = 0;
  uint64_t to_host_ = 0;
  std::vector<PlannedLaunch> launches_;
  std::function<uint64_t()> watch_;
};

}  // namespace

std::unique_ptr<PlanningDevice> NewPlanningDevice(const Board& board, uint64_t budget_bytes) {
  return std::make_unique<PlanningDeviceImpl>(board, budget_bytes);
}

}  // namespace mk
