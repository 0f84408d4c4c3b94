// The boards that predictions are made for: what a prediction divides by, and who says so.
#ifndef MERGEKERNEL_CORE_DEVICE_PLANNING_BOARD_H_
#define MERGEKERNEL_CORE_DEVICE_PLANNING_BOARD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mk {

// What one SM holds at most, by architecture: what occupancy is computed from.
struct SmLimits {
  int sm;  // compute capability times ten
  int warps;
  int blocks;
  int registers;
  uint32_t shared_bytes;            // per SM
  uint32_t shared_bytes_per_block;  // the most that a kernel can opt into
};

// How a rate is known. Never "measured by us": no board is here.
enum class RateBasis {
  kReported,  // somebody measured it on this board
  kScaled,    // the data sheet's, times what the nearest reported board reaches of its own
  kSheet,     // the data sheet's
};
const char* RateBasisName(RateBasis basis);

struct Rate {
  double per_second;  // FLOP or bytes
  RateBasis basis;
};

// Static data, all of it.
struct Board {
  const char* name;   // "agx-orin-64gb"
  const char* title;  // for people
  const SmLimits* limits;
  int sm_count;
  double clock_hz;
  Rate tensor;  // dense fp16 with fp32 accumulation, through mma.sync where that is known
  Rate fp32;
  Rate dram;
  uint64_t l2_bytes;      // 0: not published for this module
  uint64_t memory_bytes;  // of the module; on Jetson the CPU's as well
  const char* source;
};

absl::Span<const Board> Boards();

// NOT_FOUND naming the known ones, and the nearest.
absl::StatusOr<const Board*> FindBoard(const std::string& name);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_PLANNING_BOARD_H_
