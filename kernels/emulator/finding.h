// What the emulator reports about a launch.
#ifndef MERGEKERNEL_KERNELS_EMULATOR_FINDING_H_
#define MERGEKERNEL_KERNELS_EMULATOR_FINDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/emulated.h"

namespace mk {
namespace emu {

enum class FindingKind {
  kRace,           // two accesses, one of them a write, that no barrier orders
  kAsyncRead,      // memory under an asynchronous copy was touched before the wait that covers it
  kDivergence,     // lanes or threads met at different collectives
  kDeadlock,       // nothing can go on
  kUninitialised,  // a load of bytes that nobody wrote
  kOutOfBounds,
  kMisaligned,
  kReadOnlyWrite,   // a store into a buffer given as read-only
  kBadCollective,   // a mask, lane or count that the instruction forbids
  kSharedOverflow,  // more shared memory than a block may have
  kAssertion,       // MK_DEVICE_CHECK
  kNoProgress,      // a thread spins for something that cannot happen
  kBadLaunch,       // the launch itself is wrong
};

const char* FindingKindName(FindingKind kind);

// One side of a finding.
struct Party {
  Dim3 thread;
  uint32_t linear = 0;  // in the block
  uint64_t block = 0;   // in the grid, x fastest
  Site site = {nullptr, 0};
  const char* does = "";          // "stores", "loads", ...
  Site last_sync = {nullptr, 0};  // the last synchronisation it passed before, if any
  const char* last_sync_name = nullptr;
};

struct Finding {
  FindingKind kind = FindingKind::kRace;
  std::string kernel;
  std::string place;  // "tile+0x40 (shared)", "x+0x1000 (global)", or empty
  std::string what;   // one sentence
  std::vector<Party> parties;

  // Several lines: the sentence, then who did what where. Files are given by their base name.
  std::string Text() const;
};

// "gemm.cu:31", or "?".
std::string SiteText(const Site& site);
bool SameSite(const Site& a, const Site& b);

}  // namespace emu
}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_EMULATOR_FINDING_H_
