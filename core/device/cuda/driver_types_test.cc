// Our declarations against a toolkit's header, where the build finds one:
//   bazel test --copt=-isystem/usr/local/cuda/include //core/device/cuda:driver_types_test
#include "core/device/cuda/driver_types.h"

#include <gtest/gtest.h>

#include <cstdio>

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <type_traits>

namespace mk {
namespace {

// Theirs and ours call alike: enums are ints, handles are pointers, and they return an int.
template <typename Theirs, typename Ours>
constexpr bool Alike() {
  if constexpr (std::is_enum_v<Theirs>) {
    return sizeof(Theirs) == sizeof(Ours) && std::is_integral_v<Ours>;
  } else if constexpr (std::is_pointer_v<Theirs> && std::is_pointer_v<Ours>) {
    using A = std::remove_pointer_t<Theirs>;
    using B = std::remove_pointer_t<Ours>;
    if constexpr (std::is_class_v<A> || std::is_class_v<B>) {
      return std::is_class_v<A> && std::is_class_v<B>;  // two opaque handles
    } else if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
      return std::is_same_v<A, B>;
    } else {
      return std::is_const_v<A> == std::is_const_v<B> &&
             Alike<std::remove_const_t<A>, std::remove_const_t<B>>();
    }
  } else {
    return std::is_same_v<Theirs, Ours>;
  }
}

template <typename... Theirs, typename... Ours>
constexpr bool SameCall(CUresult (*)(Theirs...), cu::Result (*)(Ours...)) {
  if constexpr (sizeof...(Theirs) != sizeof...(Ours)) {
    return false;
  } else {
    return (Alike<Theirs, Ours>() && ...);
  }
}

#define MK_COMPARE(member, symbol, parameters)                            \
  static_assert(SameCall(static_cast<decltype(&::symbol)>(nullptr),       \
                         static_cast<cu::Result(*) parameters>(nullptr)), \
                #symbol);
MK_CUDA_ENTRY_POINTS(MK_COMPARE)
#undef MK_COMPARE

TEST(DriverTypes, NumbersAreTheHeaders) {
  const int pairs[][2] = {
      {cu::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY},
      {cu::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED},
      {cu::kDeinitialized, CUDA_ERROR_DEINITIALIZED},
      {cu::kStubLibrary, CUDA_ERROR_STUB_LIBRARY},
      {cu::kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE},
      {cu::kNoDevice, CUDA_ERROR_NO_DEVICE},
      {cu::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE},
      {cu::kInvalidImage, CUDA_ERROR_INVALID_IMAGE},
      {cu::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT},
      {cu::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU},
      {cu::kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE},
      {cu::kInvalidPtx, CUDA_ERROR_INVALID_PTX},
      {cu::kNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE},
      {cu::kJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND},
      {cu::kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
      {cu::kJitCompilationDisabled, CUDA_ERROR_JIT_COMPILATION_DISABLED},
      {cu::kContained, CUDA_ERROR_CONTAINED},
      {cu::kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM},
      {cu::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE},
      {cu::kNotFound, CUDA_ERROR_NOT_FOUND},
      {cu::kNotReady, CUDA_ERROR_NOT_READY},
      {cu::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS},
      {cu::kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
      {cu::kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT},
      {cu::kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED},
      {cu::kAssert, CUDA_ERROR_ASSERT},
      {cu::kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR},
      {cu::kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION},
      {cu::kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS},
      {cu::kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE},
      {cu::kInvalidPc, CUDA_ERROR_INVALID_PC},
      {cu::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED},
      {cu::kTensorMemoryLeak, CUDA_ERROR_TENSOR_MEMORY_LEAK},
      {cu::kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY},
      {cu::kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH},
      {cu::kCompatNotSupported, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE},
      {cu::kMpsClientTerminated, CUDA_ERROR_MPS_CLIENT_TERMINATED},
      {cu::kCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {cu::kCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED},
      {cu::kCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED},
      {cu::kCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT},
      {cu::kCapturedEvent, CUDA_ERROR_CAPTURED_EVENT},
      {cu::kCaptureWrongThread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD},
      {cu::kExternalDevice, CUDA_ERROR_EXTERNAL_DEVICE},
      {cu::kUnknown, CUDA_ERROR_UNKNOWN},
      {cu::kClockRateKhz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
      {cu::kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {cu::kIntegrated, CU_DEVICE_ATTRIBUTE_INTEGRATED},
      {cu::kMemoryClockRateKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
      {cu::kL2CacheBytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
      {cu::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {cu::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {cu::kMaxSharedPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
      {cu::kMaxSharedPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
      {cu::kFunctionMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
      {cu::kFunctionSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
      {cu::kFunctionMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES},
      {cu::kJitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER},
      {cu::kJitErrorLogBufferBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
      {cu::kStreamNonBlocking, CU_STREAM_NON_BLOCKING},
      {cu::kEventDisableTiming, CU_EVENT_DISABLE_TIMING},
      {cu::kEventDefault, CU_EVENT_DEFAULT},
      {cu::kHostAllocDefault, 0},
      {cu::kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}};
  for (const auto& pair : pairs) EXPECT_EQ(pair[0], pair[1]);
  EXPECT_EQ(cu::LaunchParamBuffer(), CU_LAUNCH_PARAM_BUFFER_POINTER);
  EXPECT_EQ(cu::LaunchParamBufferSize(), CU_LAUNCH_PARAM_BUFFER_SIZE);
  EXPECT_EQ(cu::kLaunchParamEnd, CU_LAUNCH_PARAM_END);
}

}  // namespace
}  // namespace mk
#else
TEST(DriverTypes, NumbersAreTheHeaders) {
  std::printf("skipped: no <cuda.h> in the compiler's path to compare with\n");
  GTEST_SKIP();
}
#endif
