#include "core/device/cuda/driver.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/device/cuda/errors.h"

namespace mk {
namespace {

struct Opened {
  DriverReport report;
  std::shared_ptr<Driver> driver;  // set where the state is kReady
};

Opened Refused(DriverState state, int version, std::string message) {
  Opened opened;
  opened.report.state = state;
  opened.report.version = version;
  opened.report.message = std::move(message);
  return opened;
}

template <typename Function>
bool Find(void* library, const char* symbol, Function** pointer) {
  *pointer = reinterpret_cast<Function*>(dlsym(library, symbol));
  return *pointer != nullptr;
}

// The first symbol that `library` lacks, or null.
const char* FillTable(void* library, Driver& driver) {
#define MK_CUDA_FIND(member, symbol, parameters) \
  if (!Find(library, #symbol, &driver.member)) return #symbol;
  MK_CUDA_ENTRY_POINTS(MK_CUDA_FIND)
#undef MK_CUDA_FIND
  return nullptr;
}

std::string InitMessage(const Driver& driver, cu::Result result) {
  const std::string failed = CudaText(driver, "cuInit", result);
  switch (result) {
    case cu::kStubLibrary:
      return absl::StrCat(failed, "; this libcuda.so.1 is the toolkit's stub and no driver");
    case cu::kSystemDriverMismatch:
      return absl::StrCat(failed, "; the library and the kernel module are of two driver versions");
    case cu::kOperatingSystem:
      return absl::StrCat(failed, "; may this user open the device files (/dev/nv*)?");
    default:
      return failed;
  }
}

void DescribeDevice(const Driver& driver, int ordinal, DriverReport& report) {
  cu::DeviceId device = 0;
  char name[256] = "";
  int major = 0, minor = 0;
  cu::Result result = driver.DeviceGet(&device, ordinal);
  if (result == cu::kSuccess) result = driver.DeviceGetName(name, sizeof name, device);
  if (result == cu::kSuccess) {
    result = driver.DeviceGetAttribute(&major, cu::kComputeCapabilityMajor, device);
  }
  if (result == cu::kSuccess) {
    result = driver.DeviceGetAttribute(&minor, cu::kComputeCapabilityMinor, device);
  }
  report.devices.push_back(result == cu::kSuccess ? absl::StrCat(name, ", sm_", major * 10 + minor)
                                                  : CudaText(driver, "device query", result));
}

Opened Open(const char* library_name, bool describe) {
  // Never closed: see Driver.
  void* library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return Refused(DriverState::kAbsent, 0,
                   absl::StrCat("no CUDA driver: ", why ? why : library_name));
  }
  auto driver = std::make_shared<Driver>();
  if (!Find(library, "cuDriverGetVersion", &driver->DriverGetVersion)) {
    return Refused(DriverState::kIncomplete, 0,
                   absl::StrCat(library_name, " lacks cuDriverGetVersion: it is no CUDA driver"));
  }
  cu::Result result = driver->DriverGetVersion(&driver->version);
  if (result != cu::kSuccess) {
    return Refused(DriverState::kFailed, 0, absl::StrCat("cuDriverGetVersion: CUresult ", result));
  }
  // Before the other symbols: an old driver may lack some, and its age is the better answer.
  if (driver->version < kLeastDriverVersion) {
    return Refused(DriverState::kTooOld, driver->version,
                   absl::StrCat("the CUDA driver is too old: it supports CUDA ",
                                CudaVersionText(driver->version), ", at least ",
                                CudaVersionText(kLeastDriverVersion), " is needed"));
  }
  if (const char* missing = FillTable(library, *driver)) {
    return Refused(DriverState::kIncomplete, driver->version,
                   absl::StrCat(library_name, " (CUDA ", CudaVersionText(driver->version),
                                ") lacks the entry point ", missing));
  }
  result = driver->Init(0);
  int count = 0;
  const char* call = "cuInit";
  if (result == cu::kSuccess) {
    call = "cuDeviceGetCount";
    result = driver->DeviceGetCount(&count);
  }
  const std::string version = CudaVersionText(driver->version);
  if (result == cu::kNoDevice || (result == cu::kSuccess && count == 0)) {
    return Refused(DriverState::kNoDevice, driver->version,
                   absl::StrCat("the CUDA driver (", version, ") sees no device"));
  }
  if (result != cu::kSuccess) {
    return Refused(DriverState::kFailed, driver->version,
                   call == std::string("cuInit") ? InitMessage(*driver, result)
                                                 : CudaText(*driver, call, result));
  }
  Opened opened;
  opened.report.state = DriverState::kReady;
  opened.report.version = driver->version;
  if (describe) {
    for (int i = 0; i < count; ++i) DescribeDevice(*driver, i, opened.report);
    opened.report.message =
        absl::StrCat("CUDA driver ", version, ", ", count,
                     count == 1 ? " device: " : " devices, the first: ", opened.report.devices[0]);
  }
  opened.driver = std::move(driver);
  return opened;
}

}  // namespace

std::string CudaVersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

const char* DriverStateName(DriverState state) {
  switch (state) {
    case DriverState::kAbsent:
      return "absent";
    case DriverState::kTooOld:
      return "too old";
    case DriverState::kIncomplete:
      return "incomplete";
    case DriverState::kFailed:
      return "failed";
    case DriverState::kNoDevice:
      return "no device";
    case DriverState::kReady:
      return "ready";
  }
  return "unknown";
}

absl::StatusOr<std::shared_ptr<const Driver>> OpenDriver(const char* library) {
  Opened opened = Open(library, false);
  if (opened.driver == nullptr) return absl::FailedPreconditionError(opened.report.message);
  return std::shared_ptr<const Driver>(std::move(opened.driver));
}

DriverReport InspectDriver(const char* library) { return Open(library, true).report; }

}  // namespace mk
