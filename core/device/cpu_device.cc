// The CPU as a device: memory is the process's own, streams are the calling thread.
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/meminfo.h"
#include "core/device/cpu_facts.h"
#include "core/device/device.h"
#include "core/device/sgemm.h"

namespace mk {
namespace {

class CpuBuffer : public DeviceBuffer {
 public:
  CpuBuffer(void* data, uint64_t size_bytes, std::atomic<uint64_t>& in_use)
      : data_(data), size_bytes_(size_bytes), in_use_(in_use) {}
  ~CpuBuffer() override {
    if (size_bytes_ != 0) munmap(data_, size_bytes_);
    in_use_.fetch_sub(size_bytes_);
  }
  void* data() override { return data_; }
  uint64_t size_bytes() const override { return size_bytes_; }

 private:
  void* const data_;
  const uint64_t size_bytes_;
  std::atomic<uint64_t>& in_use_;
};

class CpuStream : public Stream {
 public:
  absl::Status Synchronize() override { return absl::OkStatus(); }
};

class CpuEvent : public Event {
 public:
  absl::Status Record(Stream&) override {
    at_ = std::chrono::steady_clock::now();
    return absl::OkStatus();
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  absl::StatusOr<double> MillisecondsSince(Event& begin) override {
    return std::chrono::duration<double, std::milli>(at_ - static_cast<CpuEvent&>(begin).at_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point at_;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(DeviceFacts facts) : facts_(std::move(facts)) {}

  const DeviceFacts& facts() const override { return facts_; }

  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(uint64_t size_bytes) override {
    uint64_t in_use = in_use_.load();
    do {
      if (size_bytes > facts_.budget_bytes || in_use > facts_.budget_bytes - size_bytes) {
        return absl::ResourceExhaustedError(absl::StrCat("device memory: ", size_bytes,
                                                         " bytes asked with ", in_use, " of ",
                                                         facts_.budget_bytes, " in use"));
      }
    } while (!in_use_.compare_exchange_weak(in_use, in_use + size_bytes));
    void* data = nullptr;
    if (size_bytes != 0) {
      // Zeroed by the kernel, page-aligned, and really given back by munmap.
      data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (data == MAP_FAILED) {
        const int error = errno;
        in_use_.fetch_sub(size_bytes);
        return absl::ResourceExhaustedError(absl::StrCat(
            "device memory: the system refused ", size_bytes, " bytes: ", std::strerror(error)));
      }
    }
    return std::make_unique<CpuBuffer>(data, size_bytes, in_use_);
  }

  uint64_t in_use_bytes() const override { return in_use_.load(); }
  uint64_t free_bytes() const override { return MemInfoBytes("MemAvailable"); }

  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override {
    return std::make_unique<CpuStream>();
  }
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override {
    return std::make_unique<CpuEvent>();
  }

  absl::Status CopyToDevice(Stream&, void* device, const void* host, uint64_t size) override {
    if (size != 0) std::memcpy(device, host, size);
    return absl::OkStatus();
  }
  absl::Status CopyToHost(Stream&, void* host, const void* device, uint64_t size) override {
    if (size != 0) std::memcpy(host, device, size);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Module>> LoadModule(const mk_kernel_image&) override {
    return absl::UnimplementedError("the cpu device runs CPU twins and loads no device code");
  }
  absl::Status Launch(Stream&, DeviceKernel&, const LaunchDims&, const void*, uint64_t) override {
    return absl::UnimplementedError("the cpu device runs CPU twins and launches no device code");
  }

  absl::Status Canary() override {
    // Small whole numbers: any right SGEMM gives them exactly.
    constexpr int kSize = 24;
    float a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];
    for (int i = 0; i < kSize * kSize; ++i) {
      a[i] = static_cast<float>(i % 5 - 2);
      b[i] = static_cast<float>(i % 7 - 3);
      c[i] = -1;
    }
    mk_sgemm_args args = {0, 0, kSize, kSize, kSize, 1.0f, 0.0f, a, kSize, b, kSize, c, kSize};
    const absl::Status status = Sgemm(args);
    if (!status.ok()) return status;
    for (int row = 0; row < kSize; ++row) {
      for (int column = 0; column < kSize; ++column) {
        float want = 0;
        for (int k = 0; k < kSize; ++k) want += a[row * kSize + k] * b[k * kSize + column];
        if (c[row * kSize + column] != want) {
          return absl::InternalError(absl::StrCat("canary: element ", row, ",", column, " is ",
                                                  c[row * kSize + column], ", not ", want));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  const DeviceFacts facts_;
  std::atomic<uint64_t> in_use_{0};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> NewCpuDevice(uint64_t budget_bytes) {
  DeviceFacts facts;
  facts.kind = "cpu";
  facts.name = CpuModelName();
  facts.integrated = true;
  facts.compute_units = AllowedCores();
  facts.budget_bytes = budget_bytes;
  if (budget_bytes == 0) {
    const uint64_t available = MemInfoBytes("MemAvailable");
    if (available == 0) {
      return absl::FailedPreconditionError(
          "MemAvailable cannot be read; set the device's budget in bytes");
    }
    facts.budget_bytes = available / 10 * 9;
  }
  return std::make_unique<CpuDevice>(std::move(facts));
}

}  // namespace mk
