#include "core/device/cuda/errors.h"

#include "absl/strings/str_cat.h"

namespace mk {

CudaErrorClass ClassOf(cu::Result result) {
  switch (result) {
    case cu::kSuccess:
      return CudaErrorClass::kSuccess;
    // "This leaves the process in an inconsistent state ... the process must be terminated and
    // relaunched": said of each of these by the API's reference.
    case cu::kContained:
    case cu::kIllegalAddress:
    case cu::kLaunchTimeout:
    case cu::kHardwareStackError:
    case cu::kIllegalInstruction:
    case cu::kMisalignedAddress:
    case cu::kInvalidAddressSpace:
    case cu::kInvalidPc:
    case cu::kLaunchFailed:
    case cu::kTensorMemoryLeak:
    case cu::kMpsClientTerminated:
    case cu::kExternalDevice:
    // "The context cannot be used anymore, and must be destroyed" (assert), and what leaves memory
    // of unknown content or no context to work in.
    case cu::kAssert:
    case cu::kEccUncorrectable:
    case cu::kNvlinkUncorrectable:
    case cu::kContextIsDestroyed:
    case cu::kDeinitialized:
    // Ours: the reference says nothing but "unknown". A daemon that is wrong about it restarts once
    // too often; one that goes on may answer wrongly.
    case cu::kUnknown:
      return CudaErrorClass::kSticky;
    case cu::kOutOfMemory:
      return CudaErrorClass::kMemory;
    case cu::kInvalidImage:
    case cu::kNoBinaryForGpu:
    case cu::kInvalidPtx:
    case cu::kJitCompilerNotFound:
    case cu::kUnsupportedPtxVersion:
    case cu::kJitCompilationDisabled:
      return CudaErrorClass::kImage;
    case cu::kNotInitialized:
    case cu::kStubLibrary:
    case cu::kDeviceUnavailable:
    case cu::kNoDevice:
    case cu::kInvalidDevice:
    case cu::kSystemNotReady:
    case cu::kSystemDriverMismatch:
    case cu::kCompatNotSupported:
      return CudaErrorClass::kMachine;
    default:
      // 900 to 908 are the capture errors.
      return result >= cu::kCaptureUnsupported && result <= cu::kCaptureWrongThread
                 ? CudaErrorClass::kCapture
                 : CudaErrorClass::kUse;
  }
}

std::string CudaText(const Driver& driver, const char* call, cu::Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.GetErrorName(result, &name) != cu::kSuccess || name == nullptr) {
    return absl::StrCat(call, ": CUresult ", result);
  }
  if (driver.GetErrorString(result, &text) != cu::kSuccess || text == nullptr) {
    return absl::StrCat(call, ": ", name);
  }
  return absl::StrCat(call, ": ", name, ": ", text);
}

absl::Status CudaError(const Driver& driver, const char* call, cu::Result result) {
  const std::string text = CudaText(driver, call, result);
  if (result == cu::kNotFound) return absl::NotFoundError(text);
  switch (ClassOf(result)) {
    case CudaErrorClass::kMemory:
      return absl::ResourceExhaustedError(text);
    case CudaErrorClass::kImage:
      return absl::InvalidArgumentError(text);
    case CudaErrorClass::kMachine:
    case CudaErrorClass::kCapture:
      return absl::FailedPreconditionError(text);
    case CudaErrorClass::kSuccess:
    case CudaErrorClass::kSticky:
    case CudaErrorClass::kUse:
      return absl::InternalError(text);
  }
  return absl::InternalError(text);
}

}  // namespace mk
