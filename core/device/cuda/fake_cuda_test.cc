// The fake driver itself: what it must catch, it catches. Calls it as no code of ours may.
#include <thread>

#include "core/device/cuda/driver.h"
#include "core/device/testing/fake_cuda_fixture.h"

namespace mk {
namespace {

class FakeDriverTest : public FakeCudaTest {
 protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    driver_ = *OpenDriver(kFakeLibrary);
    ASSERT_EQ(d().DevicePrimaryCtxRetain(&context_, 0), cu::kSuccess);
    ASSERT_EQ(d().CtxSetCurrent(context_), cu::kSuccess);
    ASSERT_EQ(d().StreamCreate(&stream_, cu::kStreamNonBlocking), cu::kSuccess);
  }
  void TearDown() override { Reset({}); }
  const Driver& d() const { return *driver_; }
  cu::DevicePtr Memory(size_t size = 64) {
    cu::DevicePtr address = 0;
    EXPECT_EQ(d().MemAlloc(&address, size), cu::kSuccess);
    return address;
  }
  cu::Function Kernel() {
    static const std::string cubin = FakeCubin(87, {"mk_scale"});
    char log[64];
    int options[] = {cu::kJitErrorLogBuffer, cu::kJitErrorLogBufferBytes};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    EXPECT_EQ(d().ModuleLoadDataEx(&module_, cubin.data(), 2, options, values), cu::kSuccess);
    cu::Function function = nullptr;
    EXPECT_EQ(d().ModuleGetFunction(&function, module_, "mk_scale"), cu::kSuccess);
    return function;
  }
  cu::Result Launch(cu::Function function, const ScaleParams& params,
                    size_t size = sizeof(ScaleParams)) {
    void* extra[] = {cu::LaunchParamBuffer(), const_cast<ScaleParams*>(&params),
                     cu::LaunchParamBufferSize(), &size, nullptr};
    return d().LaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream_, nullptr, extra);
  }
  static void ExpectCaught(const std::string& says) {
    EXPECT_NE(Violations().find(says), std::string::npos)
        << "'" << Violations() << "' should say '" << says << "'";
  }

  std::shared_ptr<const Driver> driver_;
  cu::Context context_ = nullptr;
  cu::Stream stream_ = nullptr;
  cu::Module module_ = nullptr;
};

TEST_F(FakeDriverTest, DoubleFree) {
  const cu::DevicePtr memory = Memory();
  EXPECT_EQ(d().MemFree(memory), cu::kSuccess);
  EXPECT_EQ(d().MemFree(memory), cu::kInvalidValue);
  ExpectCaught("cuMemFree_v2: no allocation begins here");
}

TEST_F(FakeDriverTest, UseAfterFree) {
  const cu::DevicePtr memory = Memory();
  EXPECT_EQ(d().MemsetD8Async(memory, 0, 64, stream_), cu::kSuccess);
  EXPECT_EQ(d().MemFree(memory), cu::kSuccess);  // ends the fill first, as drivers do
  EXPECT_EQ(Violations(), "");
  EXPECT_EQ(d().MemsetD8Async(memory, 0, 64, stream_), cu::kInvalidValue);
  ExpectCaught("cuMemsetD8Async: range");
}

TEST_F(FakeDriverTest, OutOfRange) {
  const cu::DevicePtr memory = Memory(64);
  EXPECT_EQ(d().MemsetD8Async(memory + 32, 0, 33, stream_), cu::kInvalidValue);
  ExpectCaught("range");
}

TEST_F(FakeDriverTest, AHandleAfterItsEnd) {
  EXPECT_EQ(d().StreamDestroy(stream_), cu::kSuccess);
  EXPECT_EQ(d().StreamDestroy(stream_), cu::kInvalidHandle);
  EXPECT_EQ(d().StreamSynchronize(stream_), cu::kInvalidHandle);
  ExpectCaught("cuStreamDestroy_v2: a stream that is not there");
}

TEST_F(FakeDriverTest, AFunctionAfterItsModule) {
  const cu::Function function = Kernel();
  EXPECT_EQ(d().ModuleUnload(module_), cu::kSuccess);
  EXPECT_EQ(Launch(function, {}), cu::kInvalidHandle);
  ExpectCaught("cuLaunchKernel: a function that is not there");
}

TEST_F(FakeDriverTest, AModuleUnderAKernel) {
  const cu::Function function = Kernel();
  EXPECT_EQ(Launch(function, {}), cu::kSuccess);
  EXPECT_EQ(d().ModuleUnload(module_), cu::kSuccess);
  ExpectCaught("cuModuleUnload: a kernel of it is under way");
}

TEST_F(FakeDriverTest, AGraphOfAnUnloadedModule) {
  const cu::Function function = Kernel();
  cu::Graph graph = nullptr;
  cu::GraphExec exec = nullptr;
  EXPECT_EQ(d().StreamBeginCapture(stream_, cu::kCaptureThreadLocal), cu::kSuccess);
  EXPECT_EQ(Launch(function, {}), cu::kSuccess);
  EXPECT_EQ(d().StreamEndCapture(stream_, &graph), cu::kSuccess);
  EXPECT_EQ(d().GraphInstantiate(&exec, graph, 0), cu::kSuccess);
  EXPECT_EQ(d().ModuleUnload(module_), cu::kSuccess);
  EXPECT_EQ(d().GraphLaunch(exec, stream_), cu::kInvalidHandle);
  ExpectCaught("a graph of an unloaded module");
}

TEST_F(FakeDriverTest, ParametersOfAnotherSize) {
  EXPECT_EQ(Launch(Kernel(), {}, sizeof(ScaleParams) - 4), cu::kInvalidValue);
  ExpectCaught("mk_scale: 20 bytes of parameters, not 24");
}

TEST_F(FakeDriverTest, AnIllegalAddressIsSticky) {
  const cu::Function function = Kernel();
  ScaleParams params = {reinterpret_cast<float*>(Memory(16)), reinterpret_cast<float*>(Memory(16)),
                        1, 5};
  EXPECT_EQ(Launch(function, params), cu::kSuccess);  // nobody knows yet
  EXPECT_EQ(d().StreamSynchronize(stream_), cu::kIllegalAddress);
  cu::DevicePtr address = 0;
  EXPECT_EQ(d().MemAlloc(&address, 16), cu::kIllegalAddress);
  EXPECT_EQ(Launch(function, params), cu::kIllegalAddress);
}

TEST_F(FakeDriverTest, AnotherContext) {
  FakeMachine machine;
  machine.devices = 2;
  Reset(machine);
  ASSERT_EQ(d().Init(0), cu::kSuccess);
  cu::Context first = nullptr, second = nullptr;
  ASSERT_EQ(d().DevicePrimaryCtxRetain(&first, 0), cu::kSuccess);
  ASSERT_EQ(d().DevicePrimaryCtxRetain(&second, 1), cu::kSuccess);
  cu::DevicePtr memory = 0;
  EXPECT_EQ(d().MemAlloc(&memory, 16), cu::kContextIsDestroyed);  // of before the reset
  Reset(machine);
  ASSERT_EQ(d().Init(0), cu::kSuccess);
  ASSERT_EQ(d().DevicePrimaryCtxRetain(&first, 0), cu::kSuccess);
  ASSERT_EQ(d().DevicePrimaryCtxRetain(&second, 1), cu::kSuccess);
  ASSERT_EQ(d().CtxSetCurrent(first), cu::kSuccess);
  cu::Stream stream = nullptr;
  ASSERT_EQ(d().StreamCreate(&stream, cu::kStreamNonBlocking), cu::kSuccess);
  ASSERT_EQ(d().CtxSetCurrent(second), cu::kSuccess);
  EXPECT_EQ(d().StreamSynchronize(stream), cu::kInvalidHandle);
  ExpectCaught("a stream of another context");
}

TEST_F(FakeDriverTest, AThreadWithoutAContext) {
  std::thread([this] {
    cu::DevicePtr memory = 0;
    EXPECT_EQ(d().MemAlloc(&memory, 16), cu::kInvalidContext);
  }).join();
  ExpectCaught("cuMemAlloc_v2: without a context");
}

TEST_F(FakeDriverTest, AContextReleasedTooOften) {
  EXPECT_EQ(d().DevicePrimaryCtxRelease(0), cu::kSuccess);
  EXPECT_EQ(d().DevicePrimaryCtxRelease(0), cu::kInvalidContext);
  ExpectCaught("released more often than retained");
}

TEST_F(FakeDriverTest, PinnedMemoryUnderACopy) {
  void* pinned = nullptr;
  ASSERT_EQ(d().MemHostAlloc(&pinned, 64, 0), cu::kSuccess);
  ASSERT_EQ(d().MemcpyHtoDAsync(Memory(64), pinned, 64, stream_), cu::kSuccess);
  EXPECT_EQ(d().MemFreeHost(pinned), cu::kSuccess);
  ExpectCaught("cuMemFreeHost: a copy under way uses this memory");
}

TEST_F(FakeDriverTest, CopiesFromOrdinaryMemoryAreCounted) {
  const char host[64] = {};
  EXPECT_EQ(d().MemcpyHtoDAsync(Memory(64), host, 64, stream_), cu::kSuccess);
  EXPECT_EQ(Counts().pageable_copies, 1u);
}

TEST_F(FakeDriverTest, AStreamDestroyedWithWorkUnderWay) {
  EXPECT_EQ(d().MemsetD8Async(Memory(), 0, 64, stream_), cu::kSuccess);
  EXPECT_EQ(d().StreamDestroy(stream_), cu::kSuccess);
  ExpectCaught("cuStreamDestroy_v2: with work under way");
}

TEST_F(FakeDriverTest, OrderedFailuresComeOnce) {
  Fake().fail_nth("cuMemAlloc_v2", 2, cu::kOutOfMemory);
  cu::DevicePtr memory = 0;
  EXPECT_EQ(d().MemAlloc(&memory, 16), cu::kSuccess);
  EXPECT_EQ(d().MemAlloc(&memory, 16), cu::kOutOfMemory);
  EXPECT_EQ(d().MemAlloc(&memory, 16), cu::kSuccess);
}

}  // namespace
}  // namespace mk
