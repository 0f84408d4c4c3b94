// The CUDA driver as a table of functions, found by dlopen: nothing links CUDA, so the same daemon
// starts where there is none and says so.
#ifndef MERGEKERNEL_CORE_DEVICE_CUDA_DRIVER_H_
#define MERGEKERNEL_CORE_DEVICE_CUDA_DRIVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/cuda/driver_types.h"

namespace mk {

inline constexpr char kDriverLibrary[] = "libcuda.so.1";
// CUDA 12.0, as cuDriverGetVersion says it. JetPack 6.0, the oldest in the field that we speak of,
// has 12.2; older drivers lack nothing we call but no image of ours was ever tried on them.
inline constexpr int kLeastDriverVersion = 12000;

std::string CudaVersionText(int version);  // 12060 -> "12.6"

// Immutable once made; any thread. The library stays loaded until the process ends: a driver cannot
// be unloaded safely.
struct Driver {
  int version = 0;  // cuDriverGetVersion
#define MK_CUDA_POINTER(member, symbol, parameters) cu::Result(*member) parameters = nullptr;
  MK_CUDA_ENTRY_POINTS(MK_CUDA_POINTER)
#undef MK_CUDA_POINTER
};

enum class DriverState {
  kAbsent,      // no libcuda.so.1
  kTooOld,      // its version is below kLeastDriverVersion
  kIncomplete,  // an entry point is missing: named in the message
  kFailed,      // cuInit or the version query failed
  kNoDevice,    // a driver, and no GPU it can use
  kReady,       // at least one device
};
const char* DriverStateName(DriverState state);

// What this machine has, for people: `mk doctor`, and the daemon's refusal to start.
struct DriverReport {
  DriverState state = DriverState::kAbsent;
  std::string message;               // one sentence that says what is there, or what to do
  int version = 0;                   // 0 where it could not be asked
  std::vector<std::string> devices;  // "Orin, sm_87", by ordinal
};

// Opens and initialises the driver. FAILED_PRECONDITION with the report's message for every state
// but kReady. Blocks (the driver's start takes up to a second); any thread. `library` is a name for
// dlopen; tests give their own.
absl::StatusOr<std::shared_ptr<const Driver>> OpenDriver(const char* library = kDriverLibrary);

// The same, told rather than used. Makes no context; takes no device memory.
DriverReport InspectDriver(const char* library = kDriverLibrary);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_CUDA_DRIVER_H_
