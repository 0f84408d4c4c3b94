// Packs loaded on a device with memory of its own, over the fake driver; and a pack of ABI 1.0.
#include "core/loader/model_device.h"

#include <algorithm>
#include <cstring>

#include "core/base/clock.h"
#include "core/device/testing/fake_cuda_fixture.h"
#include "core/loader/loaded_model.h"
#include "core/loader/repository.h"
#include "core/run/run_model.h"
#include "core/weights/testing/write_safetensors.h"
#include "tests/packs/affine_params.h"
#include "tests/packs/pack_builder.h"

namespace mk {
namespace {

void Affine(const FakeLaunch& launch, const void* params) {
  const auto& p = *static_cast<const AffineParams*>(params);
  const auto count = static_cast<size_t>(p.count);
  const auto* x = static_cast<const float*>(launch.memory(p.x, count * sizeof(float)));
  const auto* w = static_cast<const float*>(launch.memory(p.w, 2 * sizeof(float)));
  auto* y = static_cast<float*>(launch.memory(p.y, count * sizeof(float)));
  if (x == nullptr || w == nullptr || y == nullptr) return;
  for (size_t i = 0; i < count; ++i) y[i] = w[0] * x[i] + w[1];
}

class ModelDeviceTest : public FakeCudaTest {
 protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    Fake().register_kernel("mk_affine", sizeof(AffineParams), 0, 1024, &Affine);
    log_.clear();
  }

  PackSpec Spec() {
    return AffineOnDeviceSpec(WriteSafetensors({{"w", "F32", {2}, FloatBytes({3, 0.5})}}));
  }
  absl::StatusOr<std::unique_ptr<LoadedModel>> Load(const PackSpec& spec, Device& device) {
    repository_.Install("p", 1, spec);
    const auto repository = Repository::Open(repository_.root());
    const auto folder = (*repository)->OpenVersion("p", 1);
    auto sealed = SealedPack::Read(folder->get(), "p", 1, 64 << 20, "mk-model-device-test");
    if (!sealed.ok()) return sealed.status();
    return LoadedModel::Create(*std::move(sealed), device, services_,
                               [this](int, const std::string& text) { log_ += text + "\n"; });
  }
  // Loads, runs three times and unloads.
  absl::Status Live(const PackSpec& spec, Device& device, float w0 = 3, float w1 = 0.5) {
    auto loaded = Load(spec, device);
    if (!loaded.ok()) return loaded.status();
    LoadedModel& model = **loaded;
    {
      auto scratch = Arena::Create(device, model.memory(), 1 << 20);
      if (!scratch.ok()) return scratch.status();
      auto lane = DeviceLane::Create(device, AllowsCapture(model.pack()));
      if (!lane.ok()) return lane.status();
      for (int run = 0; run < 3; ++run) {
        const float x[] = {1, 2, static_cast<float>(run)};
        InferRequest request;
        request.inputs = {{"X", MK_DTYPE_FP32, {3}, x, sizeof x}};
        const StopSignal stop;
        const auto response = RunModel({model.pack(), model.model(), model.signature(), **scratch,
                                        outputs_, SystemClock(), lane->get()},
                                       request, stop);
        if (!response.ok()) return response.status();
        float y[3];
        std::memcpy(y, response->outputs[0].block.data(), sizeof y);
        for (int i = 0; i < 3; ++i) {
          if (y[i] != w0 * x[i] + w1) return absl::DataLossError("a wrong number without an error");
        }
      }
    }
    bool retired = false;
    return model.Unload(&retired);
  }

  TestRepository repository_;
  const HostServices services_{HostServicesOptions{}};
  HostPool outputs_{64 << 20, 0};
  std::string log_;
};

TEST_F(ModelDeviceTest, APackLoadsRunsAndLeavesNothing) {
  const auto device = NewDevice();
  const uint64_t before = device->in_use_bytes();
  const absl::Status status = Live(Spec(), *device);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(device->in_use_bytes(), before);
  EXPECT_EQ(Counts().modules, 0u);
  EXPECT_EQ(log_,
            "pack p: module 'affine': PTX compute_80 (driver 12.0 or newer); not taken: cubin "
            "sm_110 (driver 13.0 or newer): the device is sm_87\n");
}

TEST_F(ModelDeviceTest, WeightsGoThroughTheHostWhereAPackFoldsThem) {
  const auto device = NewDevice();
  PackSpec spec = Spec();
  (*spec.manifest.mutable_parameters())["load"] = "host";
  EXPECT_TRUE(Live(spec, *device).ok());
  const auto cpu = NewCpuDevice(1 << 30);
  EXPECT_TRUE(Live(spec, **cpu).ok());
  EXPECT_TRUE(Live(Spec(), **cpu).ok());
}

TEST_F(ModelDeviceTest, APackOfAbi10StillLoadsOnTheCpuAndIsRefusedElsewhere) {
  PackSpec spec = AffineSpec(WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, 0})}}));
  spec.library = ReadRunfile("tests/packs/double_1_0.so");
  spec.manifest.mutable_code()->set_name("double");
  spec.manifest.mutable_memory()->set_scratch_bytes(4096);
  const auto cpu = NewCpuDevice(1 << 30);
  const absl::Status status = Live(spec, **cpu, 2, 0);
  EXPECT_TRUE(status.ok()) << status;
  const auto device = NewDevice();
  const auto refused = Load(spec, *device);
  EXPECT_NE(refused.status().message().find("devices do not name 'cuda'"), absl::string_view::npos)
      << refused.status();
}

TEST_F(ModelDeviceTest, APackThatNeedsMoreThanItDeclaresIsRefused) {
  const auto device = NewDevice();
  PackSpec spec = Spec();
  spec.manifest.mutable_memory()->set_weights_bytes(4);
  const auto loaded = Load(spec, *device);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kResourceExhausted) << loaded.status();
}

TEST_F(ModelDeviceTest, EveryCallOfALifeFailedOnceIsSaidAndLeavesNothing) {
  std::vector<std::string> calls;
  uint64_t begin = 0;
  {
    const auto device = NewDevice();
    begin = Fake().call_count();
    ASSERT_TRUE(Live(Spec(), *device).ok());
    for (uint64_t i = begin; i < Fake().call_count(); ++i) calls.push_back(Fake().call(i));
  }
  for (uint64_t i = 0; i < calls.size(); ++i) {
    SetUp();
    SCOPED_TRACE(calls[i] + ", call " + std::to_string(i));
    std::string logged;
    CudaOptions options = Options();
    options.log = [&logged](int, const std::string& text) { logged += text; };
    auto device = NewDevice(options);
    const uint64_t before = device->in_use_bytes();
    Fake().fail_call(begin + i, cu::kOperatingSystem);
    const absl::Status status = Live(Spec(), *device);
    const std::string said = status.ok() ? logged : std::string(status.message());
    EXPECT_NE(said.find(calls[i] + ": CUDA_ERROR_OPERATING_SYSTEM"), std::string::npos) << said;
    EXPECT_EQ(device->in_use_bytes(), before);
    device.reset();
    EXPECT_EQ(Violations(), "");
    // Only what the driver would not take back may stay.
    if (logged.empty()) {
      EXPECT_EQ(Left(), "");
    }
  }
  SetUp();
}

}  // namespace
}  // namespace mk
