// Every call that the device makes is failed once: the status names the call and the result, and
// nothing is left behind. Then the errors after which nothing works.
#include <algorithm>
#include <numeric>

#include "core/device/cuda/cuda_device.h"
#include "core/device/cuda/errors.h"
#include "core/device/testing/fake_cuda_fixture.h"

namespace mk {
namespace {

// Calls of which a failure is no failure of ours: they only make a message.
bool OnlyNames(const std::string& call) {
  return call == "cuGetErrorName" || call == "cuGetErrorString";
}
// Calls that give back: whoever made them is told by the log.
bool GivesBack(const std::string& call) {
  return call.find("Free") != call.npos || call.find("Destroy") != call.npos ||
         call.find("Unload") != call.npos || call.find("Release") != call.npos ||
         call == "cuCtxSetCurrent" || call == "cuStreamSynchronize";
}

class CudaFailureTest : public FakeCudaTest {
 protected:
  void TearDown() override {}  // each run looks for itself

  struct Outcome {
    absl::Status status;
    std::vector<std::string> logged;
    std::vector<std::string> lost;
  };

  // Everything the device can do, from its start to its end. The first failure ends it, as it does
  // in the daemon.
  static Outcome Scenario() {
    Outcome outcome;
    CudaOptions options = Options();
    options.budget_bytes = 0;
    options.mem_available = [] { return uint64_t{512 << 20}; };
    options.log = [&](int, const std::string& text) { outcome.logged.push_back(text); };
    options.on_lost = [&](const absl::Status& status) {
      outcome.lost.push_back(std::string(status.message()));
    };
    outcome.status = [&]() -> absl::Status {
      auto device = NewCudaDevice(options);
      if (!device.ok()) return device.status();
      return Use(**device);
    }();
    return outcome;
  }

  static absl::Status Use(Device& device) {
    const absl::Status canary = device.Canary();
    if (!canary.ok()) return canary;
    static const std::string cubin = FakeCubin(87, {"mk_scale"});
    auto module = device.LoadModule({MK_IMAGE_CUBIN, 87, 12000, 0, cubin.data(), cubin.size()});
    if (!module.ok()) return module.status();
    auto kernel = (*module)->Find("mk_scale");
    if (!kernel.ok()) return kernel.status();
    constexpr int kCount = 5000;  // five slots and one element
    auto x = device.Allocate(kCount * 4);
    if (!x.ok()) return x.status();
    auto y = device.Allocate(kCount * 4);
    if (!y.ok()) return y.status();
    auto stream = device.NewStream();
    if (!stream.ok()) return stream.status();
    auto begin = device.NewEvent();
    if (!begin.ok()) return begin.status();
    auto end = device.NewEvent();
    if (!end.ok()) return end.status();
    return Compute(device, **stream, **kernel, **x, **y, **begin, **end);
  }

  static absl::Status Compute(Device& device, Stream& stream, DeviceKernel& kernel, DeviceBuffer& x,
                              DeviceBuffer& y, Event& begin, Event& end) {
    constexpr int kCount = 5000;
    std::vector<float> host(kCount), got(kCount);
    std::iota(host.begin(), host.end(), 0.0f);
    const ScaleParams params = {static_cast<float*>(y.data()), static_cast<float*>(x.data()), 2,
                                kCount};
    const LaunchDims dims = {{20, 1, 1}, {256, 1, 1}, 0};
    const auto step = [](const absl::Status& status) { return status.ok(); };
    absl::Status s;
    const bool launched =
        step(s = device.CopyToDevice(stream, x.data(), host.data(), kCount * 4)) &&
        step(s = begin.Record(stream)) &&
        step(s = device.Launch(stream, kernel, dims, &params, sizeof params)) &&
        step(s = end.Record(stream)) && step(s = end.Synchronize()) &&
        step(s = end.MillisecondsSince(begin).status()) && step(s = stream.BeginCapture());
    if (!launched) return s;
    s = device.Launch(stream, kernel, dims, &params, sizeof params);
    auto graph = stream.EndCapture();  // whatever the launch said: a capture must not stay open
    if (!s.ok()) return s;
    if (!graph.ok()) return graph.status();
    const bool read = step(s = stream.LaunchGraph(**graph)) &&
                      step(s = device.CopyToHost(stream, got.data(), y.data(), kCount * 4)) &&
                      step(s = stream.Synchronize());
    // The graph must not go while it runs.
    if (!read) return stream.Synchronize().IgnoreError(), s;
    for (int i = 0; i < kCount; ++i) {
      if (got[i] != 2 * host[i]) return absl::DataLossError("a wrong number without an error");
    }
    return absl::OkStatus();
  }
};

TEST_F(CudaFailureTest, EveryCallFailedOnceIsSaidAndLeavesNothing) {
  const Outcome good = Scenario();
  ASSERT_TRUE(good.status.ok()) << good.status;
  ASSERT_EQ(Left(), "");
  ASSERT_EQ(Violations(), "");
  std::vector<std::string> calls;
  for (uint64_t i = 0; i < Fake().call_count(); ++i) calls.push_back(Fake().call(i));
  // Every entry point is called somewhere in it, but for those that belong elsewhere.
  std::string never;
#define MK_LOOK(member, symbol, parameters) \
  if (std::find(calls.begin(), calls.end(), #symbol) == calls.end()) never += #symbol " ";
  MK_CUDA_ENTRY_POINTS(MK_LOOK)
#undef MK_LOOK
  EXPECT_EQ(never, "cuGetErrorName cuGetErrorString cuMemGetInfo_v2 ");

  for (uint64_t i = 0; i < calls.size(); ++i) {
    Reset({});
    Fake().fail_call(i, cu::kOperatingSystem);
    const Outcome outcome = Scenario();
    const std::string& call = calls[i];
    SCOPED_TRACE(call + ", call " + std::to_string(i));
    EXPECT_TRUE(outcome.lost.empty());
    EXPECT_EQ(Violations(), "");
    const std::string text = outcome.status.ok() && !outcome.logged.empty()
                                 ? outcome.logged[0]
                                 : std::string(outcome.status.message());
    const std::string left = Left();
    if (call == "cuDriverGetVersion") {
      EXPECT_EQ(text, "cuDriverGetVersion: CUresult 304");  // there are no names yet
    } else {
      EXPECT_NE(text.find(call + ": CUDA_ERROR_OPERATING_SYSTEM"), text.npos) << text;
    }
    if (outcome.logged.empty()) {
      EXPECT_FALSE(outcome.status.ok());
      EXPECT_EQ(left, "") << text;
    } else {
      // A call that gives back, or the one before it: exactly one thing stays.
      EXPECT_TRUE(GivesBack(call)) << call;
      EXPECT_EQ(outcome.logged.size(), 1u);
      EXPECT_LE(std::count(left.begin(), left.end(), ' '), 2) << left;
    }
  }
  Reset({});
}

TEST_F(CudaFailureTest, EveryCallThatFailsForGoodEndsTheDeviceOnce) {
  ASSERT_TRUE(Scenario().status.ok());
  std::vector<std::string> calls;
  for (uint64_t i = 0; i < Fake().call_count(); ++i) calls.push_back(Fake().call(i));
  for (uint64_t i = 0; i < calls.size(); ++i) {
    if (OnlyNames(calls[i])) continue;
    Reset({});
    Fake().fail_call(i, cu::kIllegalAddress);
    const Outcome outcome = Scenario();
    SCOPED_TRACE(calls[i] + ", call " + std::to_string(i));
    EXPECT_EQ(Violations(), "");
    // Before there is a context, the start fails and no device is lost.
    const bool started = !outcome.lost.empty();
    EXPECT_LE(outcome.lost.size(), 1u);
    if (started) {
      EXPECT_NE(outcome.lost[0].find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos);
    } else {
      EXPECT_FALSE(outcome.status.ok() && calls[i] != "cuDevicePrimaryCtxRelease_v2");
    }
    // After it nothing is called any more but names.
    uint64_t after = 0;
    for (uint64_t j = i + 1; j < Fake().call_count(); ++j) after += !OnlyNames(Fake().call(j));
    EXPECT_EQ(started ? after : 0, 0u);
  }
  Reset({});
}

TEST_F(CudaFailureTest, OutOfMemoryAtEachStep) {
  ASSERT_TRUE(Scenario().status.ok());
  const uint64_t count = Fake().call_count();
  std::vector<std::string> calls;
  for (uint64_t i = 0; i < count; ++i) calls.push_back(Fake().call(i));
  int tried = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string& call = calls[i];
    const bool takes = call == "cuMemAlloc_v2" || call == "cuMemHostAlloc" ||
                       call == "cuStreamCreate" || call == "cuEventCreate" ||
                       call == "cuModuleLoadDataEx" || call == "cuGraphInstantiateWithFlags" ||
                       call == "cuDevicePrimaryCtxRetain" || call == "cuGraphLaunch" ||
                       call == "cuLaunchKernel";
    if (!takes) continue;
    ++tried;
    Reset({});
    Fake().fail_call(i, cu::kOutOfMemory);
    const Outcome outcome = Scenario();
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kResourceExhausted) << call;
    EXPECT_EQ(Left(), "") << call;
    EXPECT_EQ(Violations(), "") << call;
  }
  EXPECT_GT(tried, 20);
  Reset({});
}

TEST_F(CudaFailureTest, AfterAnIllegalAccessNothingIsLaunchedAndTheReasonIsKept) {
  Reset({});
  std::vector<std::string> lost;
  CudaOptions options = Options();
  options.on_lost = [&](const absl::Status& status) {
    lost.push_back(std::string(status.message()));
  };
  {
    const auto device = NewDevice(options);
    const auto module = LoadScale(*device);
    DeviceKernel* kernel = *module->Find("mk_scale");
    const auto stream = *device->NewStream();
    const ScaleParams wild = {reinterpret_cast<float*>(0x1234), reinterpret_cast<float*>(0x5678), 1,
                              4};
    const LaunchDims dims = {{1, 1, 1}, {4, 1, 1}, 0};
    EXPECT_TRUE(device->lost().ok());
    ASSERT_TRUE(device->Launch(*stream, *kernel, dims, &wild, sizeof wild).ok());
    const absl::Status first = stream->Synchronize();
    EXPECT_EQ(first.code(), absl::StatusCode::kInternal);
    EXPECT_NE(first.message().find("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"),
              absl::string_view::npos)
        << first;
    ASSERT_EQ(lost.size(), 1u);
    const uint64_t calls = Fake().call_count();
    for (const absl::Status& later : {device->Launch(*stream, *kernel, dims, &wild, sizeof wild),
                                      stream->Synchronize(), device->Canary(), device->lost(),
                                      device->Allocate(4).status(), device->NewStream().status()}) {
      EXPECT_EQ(later.code(), absl::StatusCode::kUnavailable);
      EXPECT_NE(later.message().find("the device is lost: cuStreamSynchronize: "),
                absl::string_view::npos)
          << later;
    }
    EXPECT_EQ(Fake().call_count(), calls);  // the driver was not asked again
  }
  EXPECT_EQ(lost.size(), 1u);
  EXPECT_EQ(Violations(), "");
  Reset({});
}

TEST_F(CudaFailureTest, ACanaryThatReadsSomethingElseIsSaid) {
  Reset({});
  const auto device = NewDevice();
  // A driver that loses the fill and says nothing cannot be ordered; one that fails it can.
  Fake().fail_nth("cuMemsetD8Async", 1, cu::kInvalidValue);
  const absl::Status status = device->Canary();
  EXPECT_NE(status.message().find("cuMemsetD8Async: CUDA_ERROR_INVALID_VALUE"),
            absl::string_view::npos)
      << status;
  EXPECT_TRUE(device->Canary().ok());  // not a sticky one
}

}  // namespace
}  // namespace mk
