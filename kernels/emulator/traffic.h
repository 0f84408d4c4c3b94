// Counts what a launch moves, as the hardware would see it: warps ask for sectors of device memory
// and for wavefronts of shared memory. Caches are not modelled.
//
// The accesses of a warp's lanes are matched by source line and by how often the lane was there: in
// code that does not diverge that is one instruction of the warp; in code that does, what a
// reconverged warp would have done at best.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_TRAFFIC_H_
#define MERGEKERNEL_KERNELS_EMULATOR_TRAFFIC_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "kernels/device/emulated.h"

namespace mk {
namespace emu {

struct MemoryCounts {
  uint64_t requests = 0;  // instructions of a warp
  uint64_t bytes = 0;     // asked for by lanes, each by itself
  uint64_t units = 0;     // global: sectors of 32 bytes; shared: wavefronts
  uint64_t ideal = 0;     // the same, had the addresses been laid out best: the difference is waste

  void Add(const MemoryCounts& other);
};

// One source line's part.
struct SiteCounts {
  Site site = {nullptr, 0};
  MemoryCounts global, shared;
};

struct Counts {
  MemoryCounts global_loads, global_stores;  // cp.async's two sides are here as well
  MemoryCounts shared_loads, shared_stores;
  // Different sectors of device memory that the launch loaded, but for those it had stored before,
  // and stored: what DRAM gives and takes if a cache holds all that the launch touches.
  uint64_t footprint_loads = 0, footprint_stores = 0;
  uint64_t global_atomics = 0, shared_atomics = 0;  // by lanes; not in the above
  uint64_t async_copies = 0;                        // by lanes
  uint64_t barriers = 0;                            // completed, of blocks
  uint64_t warp_barriers = 0, shuffles = 0, matrix_loads = 0, mmas = 0;  // by warps
  uint64_t mma_flops = 0;         // multiply-adds count twice; integer ones too
  uint64_t switches = 0;          // of the emulator
  std::vector<SiteCounts> sites;  // in order of first use

  uint64_t global_bytes() const { return global_loads.bytes + global_stores.bytes; }
  uint64_t footprint_bytes() const { return 32 * (footprint_loads + footprint_stores); }
  uint64_t bank_conflicts() const {
    return shared_loads.units + shared_stores.units - shared_loads.ideal - shared_stores.ideal;
  }
  uint64_t wasted_sectors() const {
    return global_loads.units + global_stores.units - global_loads.ideal - global_stores.ideal;
  }
  // A table by source line, for people.
  std::string Text() const;
};

// One instruction of a warp: `lanes` took part, each with its bytes (0 to 16) at its address
// (shared: an offset).
struct WarpAccess {
  uint32_t lanes = 0;
  uint8_t bytes[32];
  uint64_t address[32];
};

// Sectors, or wavefronts, of one instruction. Shared memory has 32 banks of 4 bytes; 8-byte
// accesses go by half warps and 16-byte ones by quarter warps; lanes that want the same word share
// it.
MemoryCounts CountAccess(const WarpAccess& access, bool shared);

class Traffic {
 public:
  void BeginLaunch();
  void BeginBlock(uint32_t warps);
  // `live`: the lanes of the warp that have not exited.
  void Touch(uint32_t warp, uint32_t lane, uint32_t live, uint32_t site, bool shared, bool store,
             uint32_t bytes, uint64_t address);
  void EndBlock();

  Counts counts;

 private:
  struct Line {
    uint32_t visits[32] = {};
    uint32_t base = 0;  // the visit that open.front() stands for
    std::deque<WarpAccess> open;
  };
  void Close(uint32_t line, const WarpAccess& access);

  std::vector<std::vector<Line>> lines_;  // [warp][4 site + 2 shared + store]
  std::vector<SiteCounts> by_site_;       // [site]; the launch puts names to them

  friend class Launch;
};

}  // namespace emu
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_TRAFFIC_H_
