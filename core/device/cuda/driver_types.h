// The part of the CUDA driver API that this project uses: our own declarations, so that no toolkit
// is needed to build the daemon. Names and numbers are those of the documented API; where a toolkit
// is at hand, driver_types_test compares every signature and constant with its <cuda.h>.
//
// Source: ours, from the API's public documentation (CUDA Driver API reference, 12.0 to 13.0).
#ifndef MERGEKERNEL_CORE_DEVICE_CUDA_DRIVER_TYPES_H_
#define MERGEKERNEL_CORE_DEVICE_CUDA_DRIVER_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace mk {
namespace cu {

using Result = int;  // CUresult
using DeviceId = int;
using DevicePtr = unsigned long long;
struct ContextTag;
struct StreamTag;
struct EventTag;
struct ModuleTag;
struct FunctionTag;
struct GraphTag;
struct GraphExecTag;
using Context = ContextTag*;
using Stream = StreamTag*;
using Event = EventTag*;
using Module = ModuleTag*;
using Function = FunctionTag*;
using Graph = GraphTag*;
using GraphExec = GraphExecTag*;

// Results that the code tells apart; errors.h classes the rest by number.
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotInitialized = 3;
inline constexpr Result kDeinitialized = 4;
inline constexpr Result kStubLibrary = 34;
inline constexpr Result kDeviceUnavailable = 46;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kInvalidDevice = 101;
inline constexpr Result kInvalidImage = 200;
inline constexpr Result kInvalidContext = 201;
inline constexpr Result kNoBinaryForGpu = 209;
inline constexpr Result kEccUncorrectable = 214;
inline constexpr Result kInvalidPtx = 218;
inline constexpr Result kNvlinkUncorrectable = 220;
inline constexpr Result kJitCompilerNotFound = 221;
inline constexpr Result kUnsupportedPtxVersion = 222;
inline constexpr Result kJitCompilationDisabled = 223;
inline constexpr Result kContained = 226;
inline constexpr Result kOperatingSystem = 304;
inline constexpr Result kInvalidHandle = 400;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;
inline constexpr Result kIllegalAddress = 700;
inline constexpr Result kLaunchOutOfResources = 701;
inline constexpr Result kLaunchTimeout = 702;
inline constexpr Result kContextIsDestroyed = 709;
inline constexpr Result kAssert = 710;
inline constexpr Result kHardwareStackError = 714;
inline constexpr Result kIllegalInstruction = 715;
inline constexpr Result kMisalignedAddress = 716;
inline constexpr Result kInvalidAddressSpace = 717;
inline constexpr Result kInvalidPc = 718;
inline constexpr Result kLaunchFailed = 719;
inline constexpr Result kTensorMemoryLeak = 721;
inline constexpr Result kSystemNotReady = 802;
inline constexpr Result kSystemDriverMismatch = 803;
inline constexpr Result kCompatNotSupported = 804;
inline constexpr Result kMpsClientTerminated = 810;
inline constexpr Result kCaptureUnsupported = 900;
inline constexpr Result kCaptureInvalidated = 901;
inline constexpr Result kCaptureUnmatched = 903;
inline constexpr Result kCaptureImplicit = 906;
inline constexpr Result kCapturedEvent = 907;
inline constexpr Result kCaptureWrongThread = 908;
inline constexpr Result kExternalDevice = 911;
inline constexpr Result kUnknown = 999;

// CUdevice_attribute
inline constexpr int kClockRateKhz = 13;
inline constexpr int kMultiprocessorCount = 16;
inline constexpr int kIntegrated = 18;
inline constexpr int kMemoryClockRateKhz = 36;
inline constexpr int kL2CacheBytes = 38;
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kMaxSharedPerMultiprocessor = 81;
inline constexpr int kMaxSharedPerBlockOptin = 97;

// CUfunction_attribute
inline constexpr int kFunctionMaxThreadsPerBlock = 0;
inline constexpr int kFunctionSharedBytes = 1;
inline constexpr int kFunctionMaxDynamicSharedBytes = 8;

// CUjit_option
inline constexpr int kJitErrorLogBuffer = 5;
inline constexpr int kJitErrorLogBufferBytes = 6;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kHostAllocDefault = 0;
inline constexpr int kCaptureThreadLocal = 1;

// Keys of cuLaunchKernel's `extra` list.
inline void* const kLaunchParamEnd = nullptr;
inline void* LaunchParamBuffer() { return reinterpret_cast<void*>(uintptr_t{1}); }
inline void* LaunchParamBufferSize() { return reinterpret_cast<void*>(uintptr_t{2}); }

}  // namespace cu
}  // namespace mk

// Every entry point that is called: X(member, symbol, parameters). Symbols with a suffix are the
// versions that CUDA 12.0's header names; drivers keep them for ever. One table makes the pointers,
// the look-up, the fake's check of its own signatures and the test against <cuda.h>.
#define MK_CUDA_ENTRY_POINTS(X)                                                                    \
  X(Init, cuInit, (unsigned flags))                                                                \
  X(DriverGetVersion, cuDriverGetVersion, (int* version))                                          \
  X(GetErrorName, cuGetErrorName, (::mk::cu::Result error, const char** name))                     \
  X(GetErrorString, cuGetErrorString, (::mk::cu::Result error, const char** text))                 \
  X(DeviceGetCount, cuDeviceGetCount, (int* count))                                                \
  X(DeviceGet, cuDeviceGet, (::mk::cu::DeviceId * device, int ordinal))                            \
  X(DeviceGetName, cuDeviceGetName, (char* name, int size, ::mk::cu::DeviceId device))             \
  X(DeviceGetAttribute, cuDeviceGetAttribute,                                                      \
    (int* value, int attribute, ::mk::cu::DeviceId device))                                        \
  X(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain,                                              \
    (::mk::cu::Context * context, ::mk::cu::DeviceId device))                                      \
  X(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (::mk::cu::DeviceId device))            \
  X(CtxSetCurrent, cuCtxSetCurrent, (::mk::cu::Context context))                                   \
  X(MemGetInfo, cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes))                      \
  X(MemAlloc, cuMemAlloc_v2, (::mk::cu::DevicePtr * address, size_t size))                         \
  X(MemFree, cuMemFree_v2, (::mk::cu::DevicePtr address))                                          \
  X(MemHostAlloc, cuMemHostAlloc, (void** address, size_t size, unsigned flags))                   \
  X(MemFreeHost, cuMemFreeHost, (void* address))                                                   \
  X(MemsetD8Async, cuMemsetD8Async,                                                                \
    (::mk::cu::DevicePtr address, unsigned char value, size_t size, ::mk::cu::Stream stream))      \
  X(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                         \
    (::mk::cu::DevicePtr to, const void* from, size_t size, ::mk::cu::Stream stream))              \
  X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                         \
    (void* to, ::mk::cu::DevicePtr from, size_t size, ::mk::cu::Stream stream))                    \
  X(StreamCreate, cuStreamCreate, (::mk::cu::Stream * stream, unsigned flags))                     \
  X(StreamSynchronize, cuStreamSynchronize, (::mk::cu::Stream stream))                             \
  X(StreamDestroy, cuStreamDestroy_v2, (::mk::cu::Stream stream))                                  \
  X(StreamBeginCapture, cuStreamBeginCapture_v2, (::mk::cu::Stream stream, int mode))              \
  X(StreamEndCapture, cuStreamEndCapture, (::mk::cu::Stream stream, ::mk::cu::Graph * graph))      \
  X(EventCreate, cuEventCreate, (::mk::cu::Event * event, unsigned flags))                         \
  X(EventRecord, cuEventRecord, (::mk::cu::Event event, ::mk::cu::Stream stream))                  \
  X(EventSynchronize, cuEventSynchronize, (::mk::cu::Event event))                                 \
  X(EventElapsedTime, cuEventElapsedTime,                                                          \
    (float* milliseconds, ::mk::cu::Event begin, ::mk::cu::Event end))                             \
  X(EventDestroy, cuEventDestroy_v2, (::mk::cu::Event event))                                      \
  X(ModuleLoadDataEx, cuModuleLoadDataEx,                                                          \
    (::mk::cu::Module * module, const void* image, unsigned option_count, int* options,            \
     void** values))                                                                               \
  X(ModuleUnload, cuModuleUnload, (::mk::cu::Module module))                                       \
  X(ModuleGetFunction, cuModuleGetFunction,                                                        \
    (::mk::cu::Function * function, ::mk::cu::Module module, const char* name))                    \
  X(FuncGetAttribute, cuFuncGetAttribute,                                                          \
    (int* value, int attribute, ::mk::cu::Function function))                                      \
  X(FuncSetAttribute, cuFuncSetAttribute, (::mk::cu::Function function, int attribute, int value)) \
  X(LaunchKernel, cuLaunchKernel,                                                                  \
    (::mk::cu::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,               \
     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                  \
     ::mk::cu::Stream stream, void** params, void** extra))                                        \
  X(GraphInstantiate, cuGraphInstantiateWithFlags,                                                 \
    (::mk::cu::GraphExec * exec, ::mk::cu::Graph graph, unsigned long long flags))                 \
  X(GraphLaunch, cuGraphLaunch, (::mk::cu::GraphExec exec, ::mk::cu::Stream stream))               \
  X(GraphExecDestroy, cuGraphExecDestroy, (::mk::cu::GraphExec exec))                              \
  X(GraphDestroy, cuGraphDestroy, (::mk::cu::Graph graph))

namespace mk {
namespace cu {

// The symbols as text, for messages: kMemAllocSymbol is "cuMemAlloc_v2".
#define MK_CUDA_NAME(member, symbol, parameters) \
  inline constexpr char k##member##Symbol[] = #symbol;
MK_CUDA_ENTRY_POINTS(MK_CUDA_NAME)
#undef MK_CUDA_NAME

}  // namespace cu
}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_CUDA_DRIVER_TYPES_H_
