// What every op shares: its cost, the wording of its refusals, and how much work one range of a
// ParallelFor must hold.
#ifndef MERGEKERNEL_KERNELS_OP_H_
#define MERGEKERNEL_KERNELS_OP_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/sdk/context.h"
#include "core/sdk/status.h"
#include "kernels/math/activation.h"

namespace mk {

// What an op moves and computes, for planning and for benches. A multiply-add is 2 FLOP; an
// exponential, a division and the like count as 1.
struct OpCost {
  int64_t bytes = 0;  // each operand once, from and to memory
  int64_t flops = 0;
};

// The most elements a tensor may have here: products of two checked sizes stay far from overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;

// InvalidArgument "Linear: bias is null".
inline Status CheckPointer(const char* op, const char* name, const void* pointer) {
  if (pointer != nullptr) return Ok();
  return InvalidArgument(std::string(op) + ": " + name + " is null");
}

// InvalidArgument "Linear: k 0 not in 1..1024".
inline Status CheckRange(const char* op, const char* name, int64_t value, int64_t low,
                         int64_t high) {
  if (value >= low && value <= high) return Ok();
  return InvalidArgument(std::string(op) + ": " + name + " " + std::to_string(value) + " not in " +
                         std::to_string(low) + ".." + std::to_string(high));
}

// InvalidArgument "Linear: y of 4194304 x 4194304 elements > 1099511627776". REQUIRES a, b >= 0.
inline Status CheckElements(const char* op, const char* name, int64_t a, int64_t b) {
  if (b == 0 || a <= kMaxElements / b) return Ok();
  return InvalidArgument(std::string(op) + ": " + name + " of " + std::to_string(a) + " x " +
                         std::to_string(b) + " elements > " + std::to_string(kMaxElements));
}

// InvalidArgument "LayerNorm: epsilon -1.000000 is not finite and >= 0".
inline Status CheckEpsilon(const char* op, float epsilon) {
  if (epsilon >= 0.0f && !std::isinf(epsilon)) return Ok();
  return InvalidArgument(std::string(op) + ": epsilon " + std::to_string(epsilon) +
                         " is not finite and >= 0");
}

// InvalidArgument "Linear: activation 9 is unknown".
inline Status CheckActivation(const char* op, Activation activation) {
  if (IsActivation(activation)) return Ok();
  return InvalidArgument(std::string(op) + ": activation " +
                         std::to_string(static_cast<mk_u32>(activation)) + " is unknown");
}

inline const char* DeviceKindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kCuda:
      return "cuda";
    case DeviceKind::kEmulated:
      return "emulated";
    case DeviceKind::kPlanning:
      return "planning";
  }
  return "unknown";
}

// Unimplemented "Linear: no code for device cuda".
inline Status NotOnDevice(const char* op, DeviceKind kind) {
  return Unimplemented(std::string(op) + ": no code for device " + DeviceKindName(kind));
}

// One range of a ParallelFor should take several times what handing it to another thread costs
// (about 10 us): 2^20 multiply-adds inside a GEMM, 2^16 element steps in a loop of our own.
inline constexpr int64_t kMinRangeMacs = int64_t{1} << 20;
inline constexpr int64_t kMinRangeSteps = int64_t{1} << 16;

// Ops that gather into scratch give a piece to each thread, but to no more than these: the bound
// that a manifest declares must hold on any host.
inline constexpr int64_t kMaxScratchThreads = 16;

// The grain for items that cost `steps` each. REQUIRES steps >= 0.
inline int64_t GrainForSteps(int64_t steps) {
  return std::max<int64_t>(1, kMinRangeSteps / std::max<int64_t>(1, steps));
}

// Whether `pointer`, of any address space, is a multiple of `bytes`.
inline bool IsAligned(const void* pointer, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

// REQUIRES a >= 0, b > 0.
inline int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace mk

#endif  // MERGEKERNEL_KERNELS_OP_H_
