// What the daemon says where the driver is absent, too old, broken, or sees no device.
#include "core/device/cuda/driver.h"

#include "core/device/cuda/errors.h"
#include "core/device/testing/fake_cuda_fixture.h"

namespace mk {
namespace {

class DriverTest : public FakeCudaTest {
 protected:
  static void ExpectReport(DriverState state, const std::string& says) {
    const DriverReport report = InspectDriver(kFakeLibrary);
    EXPECT_EQ(report.state, state) << DriverStateName(report.state);
    EXPECT_NE(report.message.find(says), std::string::npos)
        << "'" << report.message << "' should say '" << says << "'";
    // The device says the same, and is never another one.
    const auto device = NewCudaDevice(Options());
    EXPECT_EQ(device.ok(), state == DriverState::kReady);
    if (!device.ok()) {
      EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(device.status().message(), report.message);
    }
  }
};

TEST_F(DriverTest, AbsentIsSaidWithTheLoadersWords) {
  const DriverReport report = InspectDriver("libcuda-that-nobody-has.so.1");
  EXPECT_EQ(report.state, DriverState::kAbsent);
  EXPECT_NE(report.message.find("no CUDA driver: libcuda-that-nobody-has.so.1"), std::string::npos)
      << report.message;
  CudaOptions options = Options();
  options.library = "libcuda-that-nobody-has.so.1";
  EXPECT_EQ(NewCudaDevice(options).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DriverTest, ALibraryThatIsNoDriverIsSaid) {
  const DriverReport report = InspectDriver("libm.so.6");
  EXPECT_EQ(report.state, DriverState::kIncomplete);
  EXPECT_EQ(report.message, "libm.so.6 lacks cuDriverGetVersion: it is no CUDA driver");
}

TEST_F(DriverTest, TooOldNamesBothVersions) {
  FakeMachine machine;
  machine.driver_version = 11040;
  Reset(machine);
  ExpectReport(DriverState::kTooOld,
               "the CUDA driver is too old: it supports CUDA 11.4, at least 12.0 is needed");
}

TEST_F(DriverTest, NoDevice) {
  FakeMachine machine;
  machine.devices = 0;
  Reset(machine);
  ExpectReport(DriverState::kNoDevice, "the CUDA driver (12.6) sees no device");
}

TEST_F(DriverTest, AFailedStartIsNamedWithAdvice) {
  const std::pair<cu::Result, const char*> cases[] = {
      {cu::kSystemDriverMismatch, "the library and the kernel module are of two driver versions"},
      {cu::kStubLibrary, "the toolkit's stub and no driver"},
      {cu::kOperatingSystem, "may this user open the device files"},
      {cu::kDeviceUnavailable, "cuInit: CUDA_ERROR_DEVICE_UNAVAILABLE: device busy"}};
  for (const auto& [result, says] : cases) {
    Reset({});
    Fake().fail_nth("cuInit", 1, result);
    const DriverReport report = InspectDriver(kFakeLibrary);
    EXPECT_EQ(report.state, DriverState::kFailed);
    EXPECT_NE(report.message.find(says), std::string::npos) << report.message;
  }
}

TEST_F(DriverTest, ReadyNamesTheDevices) {
  FakeMachine machine;
  machine.devices = 2;
  machine.sm = 110;
  machine.driver_version = 13020;
  Reset(machine);
  const DriverReport report = InspectDriver(kFakeLibrary);
  EXPECT_EQ(report.state, DriverState::kReady);
  EXPECT_EQ(report.version, 13020);
  EXPECT_EQ(report.devices, (std::vector<std::string>{"Fake GPU 0, sm_110", "Fake GPU 1, sm_110"}));
  EXPECT_EQ(report.message, "CUDA driver 13.2, 2 devices, the first: Fake GPU 0, sm_110");
}

TEST_F(DriverTest, ADeviceThatCannotBeAskedIsListedWithTheReason) {
  for (const char* call : {"cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute"}) {
    Reset({});
    Fake().fail_nth(call, 1, cu::kInvalidDevice);
    const DriverReport report = InspectDriver(kFakeLibrary);
    EXPECT_EQ(report.state, DriverState::kReady);
    EXPECT_EQ(report.devices[0], "device query: CUDA_ERROR_INVALID_DEVICE: invalid device ordinal");
  }
}

TEST_F(DriverTest, AnOrdinalThatIsNotThere) {
  CudaOptions options = Options();
  options.ordinal = 1;
  EXPECT_EQ(NewCudaDevice(options).status().message(), "no CUDA device 1: the driver sees 1");
}

TEST_F(DriverTest, ErrorsWithoutANameAreNumbers) {
  const auto driver = OpenDriver(kFakeLibrary);
  ASSERT_TRUE(driver.ok());
  EXPECT_EQ(CudaText(**driver, "cuX", 12345), "cuX: CUresult 12345");
  Fake().fail_nth("cuGetErrorName", 1, cu::kInvalidValue);
  EXPECT_EQ(CudaText(**driver, "cuX", 2), "cuX: CUresult 2");
  Fake().fail_nth("cuGetErrorString", 1, cu::kInvalidValue);
  EXPECT_EQ(CudaText(**driver, "cuX", 2), "cuX: CUDA_ERROR_OUT_OF_MEMORY");
}

TEST(CudaErrors, StickyAreThoseAfterWhichTheProcessMustEnd) {
  // docs/design/cuda.md: the reference's list, and ours.
  for (const int result : {226, 700, 702, 714, 715, 716, 717, 718, 719, 721, 810, 911}) {
    EXPECT_TRUE(IsSticky(result)) << result;
  }
  for (const int result : {4, 214, 220, 709, 710, 999}) EXPECT_TRUE(IsSticky(result)) << result;
  for (const int result :
       {0, 1, 2, 3, 100, 200, 209, 218, 222, 304, 400, 500, 600, 701, 900, 901}) {
    EXPECT_FALSE(IsSticky(result)) << result;
  }
}

}  // namespace
}  // namespace mk
