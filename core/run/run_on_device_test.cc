// Runs on a device with memory of its own, over the fake driver: copies, launches, graphs, and
// every driver call of a run failed once.
#include <algorithm>
#include <cstring>

#include "core/base/clock.h"
#include "core/device/testing/fake_cuda_fixture.h"
#include "core/run/run_model.h"

namespace mk {
namespace {

// What the pack under test does and has seen.
struct Script {
  mk_kernel* kernel = nullptr;
  int calls = 0;
  bool reads_back = false;        // looks at its own numbers in between
  bool reads_back_later = false;  // does so from its second run on
  bool fails = false;
  bool wild = false;  // hands the kernel a wrong address
  bool no_launch = false;
  float seen = 0;
};
Script script;

// Y = 2 * X in two launches over scratch: T = factor * X, Y = 2 / factor * T.
mk_status RunScale(mk_model*, const mk_run* run) {
  ++script.calls;
  const mk_tensor& x = run->inputs[0];
  double factor = 4;
  run->parameter_double(run->self, "factor", &factor);
  void *t = nullptr, *y = nullptr;
  if (mk_status s = run->scratch(run->self, x.size_bytes, &t)) return s;
  if (mk_status s = run->output(run->self, "Y", MK_DTYPE_FP32, 1, x.shape, x.size_bytes, &y)) {
    return s;
  }
  if (script.fails) {
    run->set_error(run->self, "no luck", 7);
    return MK_FAILED_PRECONDITION;
  }
  const int count = static_cast<int>(x.shape[0]);
  if (count == 0 || script.no_launch) return MK_OK;
  const void* from = script.wild ? reinterpret_cast<const void*>(0x1234) : x.data;
  const ScaleParams params[] = {
      {static_cast<float*>(t), static_cast<const float*>(from), static_cast<float>(factor), count},
      {static_cast<float*>(y), static_cast<const float*>(t), static_cast<float>(2 / factor),
       count}};
  for (const ScaleParams& p : params) {
    const mk_launch launch = {sizeof(mk_launch),
                              0,
                              {static_cast<mk_u32>(count + 127) / 128, 1, 1},
                              {128, 1, 1},
                              &p,
                              sizeof p,
                              0,
                              0,
                              0};
    if (mk_status s = run->launch(run->self, script.kernel, &launch)) return s;
  }
  if (script.reads_back || (script.reads_back_later && script.calls > 1)) {
    if (mk_status s = run->copy_to_host(run->self, &script.seen, y, sizeof script.seen)) return s;
    if (mk_status s = run->copy_to_device(run->self, y, &script.seen, sizeof script.seen)) return s;
  }
  return MK_OK;
}

const mk_capture_extension kNever = {sizeof(mk_capture_extension), MK_CAPTURE_NEVER};

class RunOnDeviceTest : public FakeCudaTest {
 protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    script = {};
    pack_.name = "scale";
    pack_.run = &RunScale;
    signature_.inputs = {{"X", MK_DTYPE_FP32, {-1}, false}};
    signature_.outputs = {{"Y", MK_DTYPE_FP32, {-1}, false}};
  }
  void TearDown() override {
    Close();
    FakeCudaTest::TearDown();
  }

  absl::Status Open(uint64_t scratch_bytes = 1 << 20) {
    auto device = NewCudaDevice(Options());
    if (!device.ok()) return device.status();
    device_ = *std::move(device);
    static const std::string cubin = FakeCubin(87, {"mk_scale"});
    auto module = device_->LoadModule(Image(MK_IMAGE_CUBIN, 87, 12000, cubin));
    if (!module.ok()) return module.status();
    module_ = *std::move(module);
    auto kernel = module_->Find("mk_scale");
    if (!kernel.ok()) return kernel.status();
    script.kernel = reinterpret_cast<mk_kernel*>(*kernel);
    memory_ = std::make_unique<MemoryAccount>(std::array<uint64_t, 3>{0, scratch_bytes, 0});
    auto scratch = Arena::Create(*device_, *memory_, scratch_bytes);
    if (!scratch.ok()) return scratch.status();
    scratch_ = *std::move(scratch);
    auto lane = DeviceLane::Create(*device_, AllowsCapture(pack_));
    if (!lane.ok()) return lane.status();
    lane_ = *std::move(lane);
    return absl::OkStatus();
  }
  void Close() {
    lane_.reset();
    scratch_.reset();
    module_.reset();
    device_.reset();
  }

  absl::StatusOr<std::vector<float>> Run(int count, float first, Parameters parameters = {}) {
    std::vector<float> x(static_cast<size_t>(count));
    for (size_t i = 0; i < x.size(); ++i) x[i] = first + static_cast<float>(i);
    InferRequest request;
    request.inputs = {{"X", MK_DTYPE_FP32, {count}, x.data(), x.size() * 4}};
    request.parameters = std::move(parameters);
    StopSignal stop;
    const auto response =
        RunModel({pack_, nullptr, signature_, *scratch_, outputs_, SystemClock(), lane_.get()},
                 request, stop);
    EXPECT_EQ(Counts().pending, 0u) << "a run ended with work under way";
    EXPECT_EQ(memory_->live(Region::kScratch), 0u);
    if (!response.ok()) return response.status();
    const HostBlock& block = response->outputs[0].block;
    std::vector<float> y(block.size() / 4);
    if (!y.empty()) std::memcpy(y.data(), block.data(), block.size());
    return y;
  }
  // Runs and expects the right numbers.
  void ExpectRuns(int count, float first, Parameters parameters = {}) {
    const auto y = Run(count, first, std::move(parameters));
    ASSERT_TRUE(y.ok()) << y.status();
    ASSERT_EQ(y->size(), static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ((*y)[static_cast<size_t>(i)], 2 * (first + static_cast<float>(i))) << i;
    }
  }
  const RunGraphs::Counters& Graphs() { return lane_->graphs().counters(); }

  mk_pack pack_ = {};
  Signature signature_;
  HostPool outputs_{64 << 20, 0};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<MemoryAccount> memory_;
  std::unique_ptr<Arena> scratch_;
  std::unique_ptr<DeviceLane> lane_;
};

TEST_F(RunOnDeviceTest, RunsAreLaunchedThenCapturedThenReplayed) {
  ASSERT_TRUE(Open().ok());
  for (int run = 0; run < 6; ++run) ExpectRuns(3000, static_cast<float>(run));
  EXPECT_EQ(script.calls, 2);
  EXPECT_EQ(Counts().graph_launches, 5u);
  EXPECT_EQ(Counts().launches, 12u);
  EXPECT_EQ(Graphs().captured, 1u);
  EXPECT_EQ(Graphs().replayed, 4u);
}

TEST_F(RunOnDeviceTest, AnotherShapeIsAnotherGraph) {
  ASSERT_TRUE(Open().ok());
  for (int run = 0; run < 4; ++run) {
    for (const int count : {1, 100, 129}) ExpectRuns(count, static_cast<float>(run));
  }
  EXPECT_EQ(script.calls, 6);
  EXPECT_EQ(Graphs().captured, 3u);
  EXPECT_EQ(Counts().graph_execs, 3u);
}

TEST_F(RunOnDeviceTest, OtherParametersAreAnotherGraph) {
  ASSERT_TRUE(Open().ok());
  for (int run = 0; run < 4; ++run) {
    for (const double factor : {2.0, 8.0})
      ExpectRuns(10, static_cast<float>(run), {{"factor", factor}});
  }
  EXPECT_EQ(Graphs().captured, 2u);
}

TEST_F(RunOnDeviceTest, GraphsAreBoundedAndComeBack) {
  ASSERT_TRUE(Open().ok());
  for (int round = 0; round < 2; ++round) {
    for (int count = 1; count <= static_cast<int>(kMostGraphs) + 2; ++count) {
      for (int run = 0; run < 3; ++run) ExpectRuns(count, static_cast<float>(run));
      EXPECT_LE(Counts().graph_execs, kMostGraphs);
    }
  }
  EXPECT_GE(Graphs().evicted, 2u);
}

TEST_F(RunOnDeviceTest, APackThatSaysNeverIsLaunchedEachTime) {
  pack_.extension = [](const char* id) -> const void* {
    return std::strcmp(id, MK_EXTENSION_CAPTURE) == 0 ? &kNever : nullptr;
  };
  ASSERT_TRUE(Open().ok());
  for (int run = 0; run < 4; ++run) ExpectRuns(10, static_cast<float>(run));
  EXPECT_EQ(script.calls, 4);
  EXPECT_EQ(Counts().graph_launches, 0u);
}

TEST_F(RunOnDeviceTest, APackThatLooksAtItsNumbersIsNeverCaptured) {
  script.reads_back = true;
  ASSERT_TRUE(Open().ok());
  for (int run = 0; run < 4; ++run) {
    ExpectRuns(10, static_cast<float>(run));
    EXPECT_EQ(script.seen, 2.0f * static_cast<float>(run));
  }
  EXPECT_EQ(script.calls, 4);
  EXPECT_EQ(Graphs().refused, 1u);
}

TEST_F(RunOnDeviceTest, ACaptureThatFailsIsRunByLaunches) {
  script.reads_back_later = true;
  ASSERT_TRUE(Open().ok());
  for (int run = 0; run < 4; ++run) ExpectRuns(10, static_cast<float>(run));
  EXPECT_EQ(script.calls, 5);  // the second run was begun twice
  EXPECT_EQ(Graphs().refused, 1u);
  EXPECT_EQ(Graphs().captured, 0u);
}

TEST_F(RunOnDeviceTest, ADriverThatDoesNotCaptureIsLaunchedOn) {
  ASSERT_TRUE(Open().ok());
  ExpectRuns(10, 1);
  Fake().fail_nth("cuLaunchKernel", 2, cu::kCaptureUnsupported);
  ExpectRuns(10, 2);
  EXPECT_EQ(Graphs().refused, 1u);
  ExpectRuns(10, 3);
}

TEST_F(RunOnDeviceTest, BytesStayOnTheHostAndSuchRunsAreNotCaptured) {
  signature_.outputs.push_back({"TEXT", MK_DTYPE_BYTES, {1}, false});
  pack_.run = [](mk_model* model, const mk_run* run) -> mk_status {
    const mk_i64 one = 1;
    void* text = nullptr;
    if (mk_status s = run->output(run->self, "TEXT", MK_DTYPE_BYTES, 1, &one, 6, &text)) return s;
    std::memcpy(text, "\2\0\0\0ok", 6);
    return RunScale(model, run);
  };
  ASSERT_TRUE(Open().ok());
  for (int run = 0; run < 4; ++run) ExpectRuns(10, static_cast<float>(run));
  EXPECT_EQ(script.calls, 4);
}

TEST_F(RunOnDeviceTest, NothingIsCopiedOfNothing) {
  ASSERT_TRUE(Open().ok());
  for (int run = 0; run < 4; ++run) ExpectRuns(0, 0);
}

TEST_F(RunOnDeviceTest, ThePacksOwnFailureComesThroughAndTheNextRunIsRight) {
  ASSERT_TRUE(Open().ok());
  for (int run = 0; run < 2; ++run) {  // by launches, and while it is captured
    script.fails = true;
    const auto y = Run(10, 1);
    EXPECT_EQ(y.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(y.status().message(), "no luck");
    script.fails = false;
    ExpectRuns(10, 2);
  }
}

TEST_F(RunOnDeviceTest, InputsAndOutputsCountAsScratch) {
  ASSERT_TRUE(Open(3 * 1024).ok());
  ExpectRuns(256, 1);  // X, T and Y of 1024 bytes each
  EXPECT_EQ(memory_->peak(Region::kScratch), 3072u);
  const auto y = Run(257, 1);
  EXPECT_EQ(y.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(y.status().message(), "scratch: 1028 bytes asked with 2560 of 3072 in use");
}

TEST_F(RunOnDeviceTest, AnIllegalAccessNamesPackAndKernelAndEndsTheDevice) {
  ASSERT_TRUE(Open().ok());
  script.wild = true;
  const auto y = Run(10, 1);
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(y.status().message(),
            "pack 'scale', last kernel 'mk_scale': cuStreamSynchronize: "
            "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered");
  script.wild = false;
  const auto again = Run(10, 1);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kUnavailable);
  Close();
  Reset({});
}

TEST_F(RunOnDeviceTest, EveryCallOfThreeRunsFailedOnceIsSaidAndTheNextRunIsRight) {
  const auto three_runs = [this]() -> absl::Status {
    for (int run = 0; run < 3; ++run) {
      const auto y = Run(2000, 1);  // two slots of staging each way
      if (!y.ok()) return y.status();
      if (y->back() != 4000) return absl::DataLossError("a wrong number without an error");
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(Open().ok());
  const uint64_t begin = Fake().call_count();
  ASSERT_TRUE(three_runs().ok());
  std::vector<std::string> calls;
  for (uint64_t i = begin; i < Fake().call_count(); ++i) calls.push_back(Fake().call(i));
  Close();
  EXPECT_NE(std::count(calls.begin(), calls.end(), "cuGraphLaunch"), 0);
  for (uint64_t i = 0; i < calls.size(); ++i) {
    SetUp();
    SCOPED_TRACE(calls[i] + ", call " + std::to_string(i));
    ASSERT_TRUE(Open().ok());
    ASSERT_EQ(Fake().call_count(), begin);
    Fake().fail_call(begin + i, cu::kOperatingSystem);
    const absl::Status status = three_runs();
    const bool gives_back = calls[i] == "cuGraphDestroy";
    EXPECT_EQ(status.ok(), gives_back || (calls[i] == "cuCtxSetCurrent" && status.ok()));
    if (!status.ok()) {
      EXPECT_NE(std::string(status.message()).find(calls[i] + ": CUDA_ERROR_OPERATING_SYSTEM"),
                std::string::npos)
          << status;
    }
    ExpectRuns(2000, 7);
    ExpectRuns(2000, 8);
    ExpectRuns(2000, 9);
    Close();
    EXPECT_EQ(Violations(), "");
    const std::string left = Left();
    EXPECT_TRUE(left == "" || (status.ok() && left == "graphs 1 ")) << left;
  }
  SetUp();
}

}  // namespace
}  // namespace mk
