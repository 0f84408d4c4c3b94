// Who holds how much device memory: live, peak and declared bytes per region, of one generation of
// a pack.
#ifndef MERGEKERNEL_CORE_DEVICE_MEMORY_ACCOUNT_H_
#define MERGEKERNEL_CORE_DEVICE_MEMORY_ACCOUNT_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace mk {

enum class Region { kWeights = 0, kScratch = 1, kState = 2 };
inline constexpr int kRegionCount = 3;
std::string_view RegionName(Region region);  // "weights", "scratch", "state"

// Thread-safe, lock-free.
class MemoryAccount {
 public:
  // `declared`: the manifest's numbers; charging past one is refused.
  explicit MemoryAccount(std::array<uint64_t, kRegionCount> declared) : declared_(declared) {}

  // RESOURCE_EXHAUSTED naming the region, the size asked, what is live and what is declared.
  absl::Status Charge(Region region, uint64_t size_bytes);
  // REQUIRES: charged before; aborts on more than is live (a broken invariant of the host).
  void Release(Region region, uint64_t size_bytes);

  uint64_t live(Region region) const;
  uint64_t peak(Region region) const;
  uint64_t declared(Region region) const;
  uint64_t live_total() const;

 private:
  struct Counter {
    std::atomic<uint64_t> live{0};
    std::atomic<uint64_t> peak{0};
  };
  const std::array<uint64_t, kRegionCount> declared_;
  std::array<Counter, kRegionCount> counters_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_MEMORY_ACCOUNT_H_
