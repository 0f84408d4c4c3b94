// The real daemon on a GPU that is a fake driver's: serves, says why it cannot start, and ends when
// the device is lost.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/weights/testing/write_safetensors.h"
#include "proto/health/health.grpc.pb.h"
#include "server/main/testing/running_daemon.h"

namespace mk {
namespace {

using grpc::health::v1::HealthCheckResponse;
using inference::ModelInferRequest;
using inference::ModelInferResponse;

std::string FloatsOf(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

class DaemonCudaTest : public DaemonTest {
 protected:
  void SetUp() override {
    report_ = repository_.root() + "-report";
    setenv("LD_LIBRARY_PATH", "core/device/testing", 1);
    setenv("CUDA_FAKE_KERNELS", "tests/packs/fake_kernels.so", 1);
    setenv("CUDA_FAKE_REPORT", report_.c_str(), 1);
    unsetenv("CUDA_FAKE_FAIL");
    unsetenv("CUDA_FAKE_VERSION");
    unsetenv("CUDA_FAKE_DEVICES");
  }

  PackSpec Spec() {
    PackSpec spec = AffineOnDeviceSpec(WriteSafetensors({{"w", "F32", {2}, FloatBytes({3, 0.5})}}));
    spec.manifest.mutable_golden()->set_file("golden.safetensors");
    spec.manifest.mutable_golden()->set_max_rel_l2(1e-6);
    spec.small["golden.safetensors"] =
        WriteSafetensors({{"case0.input.X", "F32", {2}, FloatBytes({1, 2})},
                          {"case0.output.Y", "F32", {2}, FloatBytes({3.5, 6.5})}});
    return spec;
  }
  void StartOnCuda() { Start({"--load", "*", "--device", "cuda"}); }

  static ModelInferRequest Request(const std::vector<float>& x) {
    ModelInferRequest request = Tensor("p", "FP32", {static_cast<int64_t>(x.size())}, FloatsOf(x));
    request.mutable_inputs(0)->set_name("X");
    return request;
  }
  void ExpectServes(size_t count, float first) {
    std::vector<float> x(count), want(count);
    for (size_t i = 0; i < count; ++i) {
      x[i] = first + static_cast<float>(i);
      want[i] = 3 * x[i] + 0.5f;
    }
    ModelInferResponse response;
    const grpc::Status status = Infer(Request(x), &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.raw_output_contents(0), FloatsOf(want));
  }
  // What the fake driver of each process had left at its end, by first line.
  std::vector<std::string> Reports() {
    std::vector<std::string> reports;
    const std::filesystem::path base(report_);
    for (const auto& entry : std::filesystem::directory_iterator(base.parent_path())) {
      const std::string path = entry.path().string();
      if (path.rfind(report_ + ".", 0) == 0) reports.push_back(ReadFileOrEmpty(path));
    }
    return reports;
  }
  // Starts a daemon that must not come up; its exit code and all it said.
  std::pair<int, std::string> FailToStart() {
    const std::string command = "server/main/mergekerneld --repository " + repository_.root() +
                                " --grpc-address 127.0.0.1:0 --metrics-address '' --device cuda" +
                                " --probe-path core/loader/mergekernel-probe 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::string said;
    char chunk[1024];
    while (const size_t got = fread(chunk, 1, sizeof chunk, pipe)) said.append(chunk, got);
    return {WEXITSTATUS(pclose(pipe)), said};
  }
  void ExpectNoStart(const std::string& says) {
    const auto [code, said] = FailToStart();
    EXPECT_EQ(code, 3) << said;
    EXPECT_NE(said.find(says), std::string::npos) << said;
    EXPECT_EQ(said.find("ready grpc="), std::string::npos) << said;
  }

  std::string report_;
};

TEST_F(DaemonCudaTest, LoadsServesReplaysSwapsAndUnloadsWithNothingLeft) {
  repository_.Install("p", 1, Spec());
  StartOnCuda();
  for (int run = 0; run < 5; ++run) {
    ExpectServes(1000, static_cast<float>(run));
    ExpectServes(0, 0);
    ExpectServes(7, static_cast<float>(run));
  }
  // Another generation under the same name, by way of MK_WEIGHT_HOST and upload.
  PackSpec second = Spec();
  (*second.manifest.mutable_parameters())["load"] = "host";
  repository_.Install("p", 1, second);
  ASSERT_TRUE(Load("p").ok());
  ExpectServes(1000, 9);
  ASSERT_TRUE(Unload("p").ok());
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
  daemon_.reset();
  const std::vector<std::string> reports = Reports();
  ASSERT_EQ(reports.size(), 3u);  // the daemon, and a probe for each load
  for (const std::string& report : reports) {
    EXPECT_EQ(report.rfind("contexts 0 allocations 0 pinned 0 streams 0 events 0 modules 0 graphs "
                           "0 graph_execs 0 pageable 0 violations 0\n",
                           0),
              0u)
        << report;
    EXPECT_EQ(report.find(" graph_launches 0\n"), std::string::npos) << report;
  }
}

TEST_F(DaemonCudaTest, APackWhosePlanTakesMoreThanItDeclaresIsRefused) {
  PackSpec greedy = Spec();
  greedy.manifest.mutable_memory()->set_device_scratch_bytes(256);
  repository_.Install("p", 1, greedy);
  Start({"--device", "cuda"});
  const grpc::Status status = Load("p");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("plan: manifest.memory.device_scratch_bytes declares 256 "
                                        "bytes, and the golden case takes 512"),
            std::string::npos)
      << status.error_message();
}

TEST_F(DaemonCudaTest, TheSamePackServesOnTheCpu) {
  repository_.Install("p", 1, Spec());
  Start({"--load", "*", "--device", "cpu"});
  ExpectServes(1000, 1);
}

TEST_F(DaemonCudaTest, WithoutADriverItSaysSoAndNeverServesOnTheCpu) {
  setenv("LD_LIBRARY_PATH", "", 1);
  const auto [code, said] = FailToStart();
  if (said.find("no CUDA driver") == std::string::npos) {
    std::printf("skipped: this machine has a CUDA driver of its own\n");
    GTEST_SKIP();
  }
  ExpectNoStart("device 'cuda': no CUDA driver: libcuda.so.1: cannot open shared object file");
}

TEST_F(DaemonCudaTest, AnOldDriverAndNoDeviceAreTold) {
  setenv("CUDA_FAKE_VERSION", "11040", 1);
  ExpectNoStart("device 'cuda': the CUDA driver is too old: it supports CUDA 11.4");
  unsetenv("CUDA_FAKE_VERSION");
  setenv("CUDA_FAKE_DEVICES", "0", 1);
  ExpectNoStart("device 'cuda': the CUDA driver (12.6) sees no device");
  unsetenv("CUDA_FAKE_DEVICES");
  setenv("CUDA_FAKE_FAIL", "cuMemHostAlloc:1:2", 1);
  ExpectNoStart("device 'cuda': cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY");
}

TEST_F(DaemonCudaTest, ALostDeviceIsNotServingAtOnceAndEndsTheProcess) {
  PackSpec spec = Spec();
  spec.manifest.clear_golden();
  spec.small.clear();
  repository_.Install("p", 1, spec);
  setenv("CUDA_FAKE_FAIL", "cuLaunchKernel:2:700", 1);  // the probe launches nothing
  StartOnCuda();
  auto health = grpc::health::v1::Health::NewStub(channel_);
  grpc::ClientContext watch_context;
  grpc::health::v1::HealthCheckRequest everything;
  auto watch = health->Watch(&watch_context, everything);
  HealthCheckResponse seen;
  ASSERT_TRUE(watch->Read(&seen));
  EXPECT_EQ(seen.status(), HealthCheckResponse::SERVING);
  ExpectServes(10, 1);
  const auto begin = std::chrono::steady_clock::now();
  const grpc::Status status = Infer(Request({1, 2, 3}));
  EXPECT_EQ(status.error_code(), grpc::INTERNAL);
  EXPECT_NE(status.error_message().find("pack 'affine', last kernel 'mk_affine': launch of "
                                        "'mk_affine': cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS"),
            std::string::npos)
      << status.error_message();
  ASSERT_TRUE(watch->Read(&seen));
  EXPECT_EQ(seen.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(daemon_->Wait(), 4);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(11));
  daemon_.reset();
}

TEST_F(DaemonCudaTest, APackWithoutAnImageForThisDeviceIsRefusedWithTheReasons) {
  repository_.Install("p", 1, Spec());
  setenv("CUDA_FAKE_FAIL", "cuModuleLoadDataEx:1:222", 1);
  StartOnCuda();
  const grpc::Status status = Load("p");
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find(
                "module 'affine': none of its 2 images runs here: cubin sm_110 (driver 13.0 or "
                "newer): the device is sm_87; PTX compute_80 (driver 12.0 or newer): "
                "cuModuleLoadDataEx: CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
            std::string::npos)
      << status.error_message();
}

}  // namespace
}  // namespace mk
