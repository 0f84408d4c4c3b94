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

constexpr uint64_t kHostAlign = 64;
// What the driver's own allocations promise, so that no access of a kernel straddles a sector.
constexpr uint64_t kDeviceAlign = 256;
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
  const bool host = device.facts().host_addressable;
  // Room for the gaps of a sanitized build, which the manifest knows nothing of.
  const uint64_t capacity =
      kGap == 0 || !host ? capacity_bytes
                         : CheckedAdd(CheckedMul(capacity_bytes, 2).value_or(UINT64_MAX), 1 << 20)
                               .value_or(UINT64_MAX);
  MK_ASSIGN_OR_RETURN(std::unique_ptr<DeviceBuffer> buffer, device.Allocate(capacity));
  auto arena = std::unique_ptr<Arena>(new Arena(std::move(buffer), account, host));
  arena->Poison(0, capacity);
  arena->declared_bytes_ = capacity_bytes;
  return arena;
}

Arena::Arena(std::unique_ptr<DeviceBuffer> buffer, MemoryAccount& account, bool host)
    : buffer_(std::move(buffer)),
      account_(account),
      host_(host),
      align_(host ? kHostAlign : kDeviceAlign),
      gap_(host ? kGap : 0) {}

Arena::~Arena() {
  Reset();
  Unpoison(0, buffer_->size_bytes());
}

void Arena::Poison(uint64_t offset, uint64_t size_bytes) {
  if (host_) MK_POISON(static_cast<char*>(buffer_->data()) + offset, size_bytes);
  static_cast<void>(offset), static_cast<void>(size_bytes);
}

void Arena::Unpoison(uint64_t offset, uint64_t size_bytes) {
  if (host_) MK_UNPOISON(static_cast<char*>(buffer_->data()) + offset, size_bytes);
  static_cast<void>(offset), static_cast<void>(size_bytes);
}

absl::Status Arena::Refuse(uint64_t size_bytes) const {
  return absl::ResourceExhaustedError(absl::StrCat("scratch: ", size_bytes, " bytes asked with ",
                                                   charged_bytes_ + end_bytes_, " of ",
                                                   declared_bytes_, " in use"));
}

absl::StatusOr<void*> Arena::Allocate(uint64_t size_bytes) {
  const uint64_t left = buffer_->size_bytes() - used_bytes_ - end_bytes_;
  // An allocation of 0 still moves on, so that addresses stay distinct.
  const uint64_t wanted = std::max<uint64_t>(size_bytes, 1);
  const uint64_t rounded = wanted > left ? wanted : (wanted + align_ - 1) / align_ * align_ + gap_;
  if (rounded > left || charged_bytes_ + end_bytes_ + rounded - gap_ > declared_bytes_) {
    return Refuse(size_bytes);
  }
  MK_RETURN_IF_ERROR(account_.Charge(Region::kScratch, rounded - gap_));
  void* data = static_cast<char*>(buffer_->data()) + used_bytes_;
  Unpoison(used_bytes_, wanted);
  used_bytes_ += rounded;
  charged_bytes_ += rounded - gap_;
  high_water_bytes_ = std::max(high_water_bytes_, charged_bytes_ + end_bytes_);
  marks_.push_back({used_bytes_, charged_bytes_});
  return data;
}

absl::StatusOr<void*> Arena::AllocateEnd(uint64_t size_bytes) {
  const uint64_t left = buffer_->size_bytes() - used_bytes_ - end_bytes_;
  const uint64_t wanted = std::max<uint64_t>(size_bytes, 1);
  if (wanted > left) return Refuse(size_bytes);
  // Down to an aligned place.
  const uint64_t end = buffer_->size_bytes() - end_bytes_;
  const uint64_t offset = (end - wanted) / align_ * align_;
  const uint64_t taken = end - offset;
  if (offset < used_bytes_ || charged_bytes_ + end_bytes_ + taken > declared_bytes_) {
    return Refuse(size_bytes);
  }
  MK_RETURN_IF_ERROR(account_.Charge(Region::kScratch, taken));
  Unpoison(offset, wanted);
  end_bytes_ += taken;
  high_water_bytes_ = std::max(high_water_bytes_, charged_bytes_ + end_bytes_);
  return static_cast<char*>(buffer_->data()) + offset;
}

void Arena::ReleaseEnd(uint64_t mark) {
  if (mark >= end_bytes_) return;
  const uint64_t given = end_bytes_ - mark;
  Poison(buffer_->size_bytes() - end_bytes_, given);
  account_.Release(Region::kScratch, given);
  end_bytes_ = mark;
}

uint64_t Arena::Mark() const { return marks_.size(); }

void Arena::Release(uint64_t mark) {
  if (mark >= marks_.size()) return;
  const Level level = mark == 0 ? Level{} : marks_[mark - 1];
  Poison(level.used_bytes, used_bytes_ - level.used_bytes);
  account_.Release(Region::kScratch, charged_bytes_ - level.charged_bytes);
  used_bytes_ = level.used_bytes;
  charged_bytes_ = level.charged_bytes;
  marks_.resize(mark);
}

uint64_t Arena::capacity_bytes() const { return declared_bytes_; }
uint64_t Arena::high_water_bytes() const { return high_water_bytes_; }

}  // namespace mk
