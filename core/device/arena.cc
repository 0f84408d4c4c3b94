#include "core/device/arena.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/checked.h"
#include "core/base/status_macros.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define MK_POISON(address, size) ASAN_POISON_MEMORY_REGION(address, size)
#define MK_UNPOISON(address, size) ASAN_UNPOISON_MEMORY_REGION(address, size)
#else
#define MK_POISON(address, size) static_cast<void>(0)
#define MK_UNPOISON(address, size) static_cast<void>(0)
#endif

namespace mk {
namespace {

constexpr uint64_t kAlign = 64;
// Under AddressSanitizer each block is followed by poison, so that a pack's overrun is caught where
// it happens.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kGap = 64;
#else
constexpr uint64_t kGap = 0;
#endif

}  // namespace

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(Device& device, MemoryAccount& account,
                                                     uint64_t capacity_bytes) {
  // Room for the gaps of a sanitized build, which the manifest knows nothing of.
  const uint64_t capacity =
      kGap == 0 ? capacity_bytes
                : CheckedAdd(CheckedMul(capacity_bytes, 2).value_or(UINT64_MAX), 1 << 20)
                      .value_or(UINT64_MAX);
  MK_ASSIGN_OR_RETURN(std::unique_ptr<DeviceBuffer> buffer, device.Allocate(capacity));
  MK_POISON(buffer->data(), buffer->size_bytes());
  auto arena = std::unique_ptr<Arena>(new Arena(std::move(buffer), account));
  arena->declared_bytes_ = capacity_bytes;
  return arena;
}

Arena::Arena(std::unique_ptr<DeviceBuffer> buffer, MemoryAccount& account)
    : buffer_(std::move(buffer)), account_(account) {}

Arena::~Arena() {
  Reset();
  MK_UNPOISON(buffer_->data(), buffer_->size_bytes());
}

absl::StatusOr<void*> Arena::Allocate(uint64_t size_bytes) {
  const uint64_t left = buffer_->size_bytes() - used_bytes_;
  // An allocation of 0 still moves on, so that addresses stay distinct.
  const uint64_t wanted = std::max<uint64_t>(size_bytes, 1);
  const uint64_t rounded = wanted > left ? wanted : (wanted + kAlign - 1) / kAlign * kAlign + kGap;
  if (rounded > left || charged_bytes_ + rounded - kGap > declared_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("scratch: ", size_bytes, " bytes asked with ",
                                                     charged_bytes_, " of ", declared_bytes_,
                                                     " in use"));
  }
  MK_RETURN_IF_ERROR(account_.Charge(Region::kScratch, rounded - kGap));
  void* data = static_cast<char*>(buffer_->data()) + used_bytes_;
  MK_UNPOISON(data, wanted);
  used_bytes_ += rounded;
  charged_bytes_ += rounded - kGap;
  high_water_bytes_ = std::max(high_water_bytes_, charged_bytes_);
  marks_.push_back({used_bytes_, charged_bytes_});
  return data;
}

uint64_t Arena::Mark() const { return marks_.size(); }

void Arena::Release(uint64_t mark) {
  if (mark >= marks_.size()) return;
  const Level level = mark == 0 ? Level{} : marks_[mark - 1];
  MK_POISON(static_cast<char*>(buffer_->data()) + level.used_bytes, used_bytes_ - level.used_bytes);
  account_.Release(Region::kScratch, charged_bytes_ - level.charged_bytes);
  used_bytes_ = level.used_bytes;
  charged_bytes_ = level.charged_bytes;
  marks_.resize(mark);
}

uint64_t Arena::capacity_bytes() const { return declared_bytes_; }
uint64_t Arena::high_water_bytes() const { return high_water_bytes_; }

}  // namespace mk
