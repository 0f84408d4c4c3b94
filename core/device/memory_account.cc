#include "core/device/memory_account.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace mk {

std::string_view RegionName(Region region) {
  static constexpr std::string_view kNames[] = {"weights", "scratch", "state"};
  return kNames[static_cast<int>(region)];
}

absl::Status MemoryAccount::Charge(Region region, uint64_t size_bytes) {
  const int index = static_cast<int>(region);
  Counter& counter = counters_[index];
  uint64_t live = counter.live.load(std::memory_order_relaxed);
  do {
    if (size_bytes > declared_[index] || live > declared_[index] - size_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(std::string(RegionName(region)), ": ", size_bytes, " bytes asked with ",
                       live, " live pass the ", declared_[index], " that the manifest declares"));
    }
  } while (!counter.live.compare_exchange_weak(live, live + size_bytes, std::memory_order_relaxed));
  uint64_t peak = counter.peak.load(std::memory_order_relaxed);
  while (peak < live + size_bytes &&
         !counter.peak.compare_exchange_weak(peak, live + size_bytes, std::memory_order_relaxed)) {
  }
  return absl::OkStatus();
}

void MemoryAccount::Release(Region region, uint64_t size_bytes) {
  const uint64_t before =
      counters_[static_cast<int>(region)].live.fetch_sub(size_bytes, std::memory_order_relaxed);
  if (before < size_bytes) {
    std::fprintf(stderr, "MemoryAccount: %llu bytes released with %llu live\n",
                 static_cast<unsigned long long>(size_bytes),
                 static_cast<unsigned long long>(before));
    std::abort();
  }
}

uint64_t MemoryAccount::live(Region region) const {
  return counters_[static_cast<int>(region)].live.load(std::memory_order_relaxed);
}

uint64_t MemoryAccount::peak(Region region) const {
  return counters_[static_cast<int>(region)].peak.load(std::memory_order_relaxed);
}

uint64_t MemoryAccount::declared(Region region) const {
  return declared_[static_cast<int>(region)];
}

uint64_t MemoryAccount::live_total() const {
  uint64_t total = 0;
  for (const Counter& counter : counters_) total += counter.live.load(std::memory_order_relaxed);
  return total;
}

}  // namespace mk
