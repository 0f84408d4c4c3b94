// The CUDA device over the fake driver: facts, memory, copies, modules, launches, graphs, the
// canary.
#include "core/device/cuda/cuda_device.h"

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "core/device/cuda/chunk_pool.h"
#include "core/device/images.h"
#include "core/device/testing/fake_cuda_fixture.h"

namespace mk {
namespace {

using CudaDeviceTest = FakeCudaTest;

std::vector<float> Ramp(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

// x, y on the device with a stream and the kernel.
struct Scene {
  explicit Scene(Device& device, Module& module, int count)
      : count(count), stream(*device.NewStream()), kernel(*module.Find("mk_scale")) {
    x = *device.Allocate(static_cast<uint64_t>(count) * 4);
    y = *device.Allocate(static_cast<uint64_t>(count) * 4);
  }
  absl::Status Launch(Device& device, float factor) {
    const ScaleParams params = {static_cast<float*>(y->data()), static_cast<float*>(x->data()),
                                factor, count};
    return device.Launch(*stream, *kernel,
                         {{static_cast<uint32_t>(count + 255) / 256, 1, 1}, {256, 1, 1}, 0},
                         &params, sizeof params);
  }
  const int count;
  std::unique_ptr<Stream> stream;
  DeviceKernel* kernel;
  std::unique_ptr<DeviceBuffer> x, y;
};

TEST_F(CudaDeviceTest, FactsAreTheBoards) {
  const auto device = NewDevice();
  const DeviceFacts& facts = device->facts();
  EXPECT_EQ(facts.kind, "cuda");
  EXPECT_EQ(facts.name, "Fake GPU 0");
  EXPECT_EQ(facts.sm, 87);
  EXPECT_EQ(facts.compute_units, 8);
  EXPECT_EQ(facts.l2_bytes, 4u << 20);
  EXPECT_EQ(facts.shared_bytes_per_unit, 164u << 10);
  EXPECT_EQ(facts.shared_bytes_per_block, 163u << 10);
  EXPECT_EQ(facts.clock_khz, 918000);
  EXPECT_EQ(facts.driver_version, 12060);
  EXPECT_TRUE(facts.integrated);
  EXPECT_FALSE(facts.host_addressable);
  EXPECT_EQ(facts.budget_bytes, 256u << 20);
}

TEST_F(CudaDeviceTest, FreeMemoryIsMemAvailableOnABoardAndTheDriversElsewhere) {
  CudaOptions options = Options();
  options.budget_bytes = 0;
  options.mem_available = [] { return uint64_t{100 << 20}; };
  EXPECT_EQ(NewDevice(options)->facts().budget_bytes, uint64_t{100 << 20} / 10 * 9);
  FakeMachine machine;
  machine.integrated = 0;
  Reset(machine);
  const auto device = NewDevice(options);
  EXPECT_EQ(device->facts().budget_bytes, (uint64_t{1} << 30) / 10 * 9);
  EXPECT_EQ(device->free_bytes(), (uint64_t{1} << 30) - device->in_use_bytes());
}

TEST_F(CudaDeviceTest, ABoardThatHasNoMemoryLeftIsNotAsked) {
  uint64_t available = 100 << 20;
  CudaOptions options = Options();
  options.mem_available = [&available] { return available; };
  const auto device = NewDevice(options);
  available = 10 << 20;
  const auto buffer = device->Allocate(60 << 20);
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(buffer.status().message(),
            "device memory: 62914560 bytes asked, the system has 10485760");
}

TEST_F(CudaDeviceTest, MemoryIsZeroedAlignedAndCountedAndComesBack) {
  const auto device = NewDevice();
  const uint64_t before = device->in_use_bytes();
  const auto stream = *device->NewStream();
  {
    const auto a = *device->Allocate(1000), b = *device->Allocate(3);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a->data()) % kDeviceAlign, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b->data()) % kDeviceAlign, 0u);
    std::string bytes(1000, 'x');
    ASSERT_TRUE(device->CopyToHost(*stream, bytes.data(), a->data(), 1000).ok());
    ASSERT_TRUE(stream->Synchronize().ok());
    EXPECT_EQ(bytes, std::string(1000, '\0'));
    const auto large = *device->Allocate(40 << 20);
    EXPECT_EQ(device->in_use_bytes(), before + (40u << 20));
  }
  EXPECT_EQ(device->in_use_bytes(), before);
  EXPECT_EQ(Counts().allocations, 1u);  // the canary's chunk
}

TEST_F(CudaDeviceTest, BuffersShareChunksAndHolesAreUsedAgain) {
  const auto device = NewDevice();
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  for (int i = 0; i < 1000; ++i) buffers.push_back(*device->Allocate(5000));
  EXPECT_EQ(Counts().allocations, 1u);
  void* const hole = buffers[500]->data();
  buffers[500].reset();
  buffers[501].reset();
  const auto again = *device->Allocate(10000);
  EXPECT_EQ(again->data(), hole);
}

TEST_F(CudaDeviceTest, TheBudgetAndTheLargestBufferBound) {
  const auto device = NewDevice();
  auto large = device->Allocate((uint64_t{512} << 20) + 1);
  EXPECT_EQ(large.status().message(),
            "device memory: 536870913 bytes asked; one buffer takes at most 536870912");
  large = device->Allocate(300 << 20);
  EXPECT_EQ(large.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(large.status().message().find(" of 268435456 in use"), absl::string_view::npos);
  const auto fits = device->Allocate(200 << 20);
  EXPECT_TRUE(fits.ok());
  EXPECT_FALSE(device->Allocate(100 << 20).ok());
}

TEST_F(CudaDeviceTest, TheDriversRefusalNamesTheCall) {
  FakeMachine machine;
  machine.memory_bytes = 64 << 20;
  Reset(machine);
  const auto device = NewDevice();
  const auto buffer = device->Allocate(60 << 20);
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(buffer.status().message().find("cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY"),
            absl::string_view::npos)
      << buffer.status();
}

TEST_F(CudaDeviceTest, CopiesOfAnySizeGoThroughTheRing) {
  const auto device = NewDevice();  // slots of 4096
  const auto stream = *device->NewStream();
  for (const size_t size : {size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{100000}}) {
    const auto buffer = *device->Allocate(size);
    std::string sent(size, '\0'), got(size, '?');
    for (size_t i = 0; i < size; ++i) sent[i] = static_cast<char>(i * 31 + size);
    std::string lent = sent;
    ASSERT_TRUE(device->CopyToDevice(*stream, buffer->data(), lent.data(), size).ok());
    lent.assign(size, '!');  // may be reused at once
    ASSERT_TRUE(device->CopyToHost(*stream, got.data(), buffer->data(), size).ok());
    ASSERT_TRUE(stream->Synchronize().ok());
    EXPECT_EQ(got, sent) << size;
  }
}

TEST_F(CudaDeviceTest, WhatIsCopiedToTheHostIsThereAfterTheWaitAndNotBefore) {
  const auto device = NewDevice();
  const auto stream = *device->NewStream();
  const auto buffer = *device->Allocate(16);
  std::string got(16, '?');
  ASSERT_TRUE(device->CopyToHost(*stream, got.data(), buffer->data(), 16).ok());
  EXPECT_EQ(got, std::string(16, '?'));
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(got, std::string(16, '\0'));
}

TEST_F(CudaDeviceTest, AStreamThatEndsEarlyWritesToNobody) {
  const auto device = NewDevice();
  const auto buffer = *device->Allocate(16);
  auto stream = *device->NewStream();
  {
    auto got = std::make_unique<char[]>(16);
    ASSERT_TRUE(device->CopyToHost(*stream, got.get(), buffer->data(), 16).ok());
  }
  stream.reset();  // AddressSanitizer would see a write to `got`
}

TEST_F(CudaDeviceTest, LaunchesComputeInOrder) {
  const auto device = NewDevice();
  const auto module = LoadScale(*device);
  Scene scene(*device, *module, 1000);
  const std::vector<float> x = Ramp(1000);
  std::vector<float> y(1000);
  ASSERT_TRUE(device->CopyToDevice(*scene.stream, scene.x->data(), x.data(), 4000).ok());
  ASSERT_TRUE(scene.Launch(*device, 3).ok());
  ASSERT_TRUE(device->CopyToHost(*scene.stream, y.data(), scene.y->data(), 4000).ok());
  ASSERT_TRUE(scene.stream->Synchronize().ok());
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(y[i], 3 * x[i]) << i;
}

TEST_F(CudaDeviceTest, LaunchesThatCannotBeAreRefusedByName) {
  const auto device = NewDevice();
  const auto module = LoadScale(*device);
  Scene scene(*device, *module, 4);
  const ScaleParams params = {};
  const std::pair<LaunchDims, const char*> cases[] = {
      {{{0, 1, 1}, {1, 1, 1}, 0}, "must not be 0"},
      {{{1, 1, 1}, {1, 0, 1}, 0}, "must not be 0"},
      {{{1, 65536, 1}, {1, 1, 1}, 0}, "grid y 65536"},
      {{{1, 1, 65536}, {1, 1, 1}, 0}, "z 65536"},
      {{{0x80000000u, 1, 1}, {1, 1, 1}, 0}, "grid x"},
      {{{1, 1, 1}, {1024, 2, 1}, 0}, "block 1024 x 2 x 1 > 1024 threads"},
      {{{1, 1, 1}, {0x80000000u, 0x80000000u, 0x80000000u}, 0}, "> 1024 threads"},
      {{{1, 1, 1}, {1, 1, 1}, 200 << 10}, "shared_bytes 204800 > 166912"}};
  for (const auto& [dims, says] : cases) {
    const absl::Status status =
        device->Launch(*scene.stream, *scene.kernel, dims, &params, sizeof params);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_NE(status.message().find("launch of 'mk_scale': "), absl::string_view::npos);
    EXPECT_NE(status.message().find(says), absl::string_view::npos) << status;
  }
  const absl::Status large =
      device->Launch(*scene.stream, *scene.kernel, {{1, 1, 1}, {1, 1, 1}, 0}, &params, 5000);
  EXPECT_NE(large.message().find("params 5000 bytes > 4096"), absl::string_view::npos) << large;
}

TEST_F(CudaDeviceTest, LargeDynamicSharedMemoryIsOptedIntoAtLoad) {
  const auto device = NewDevice();
  const auto module = LoadScale(*device);
  Scene scene(*device, *module, 4);
  const ScaleParams params = {static_cast<float*>(scene.y->data()),
                              static_cast<float*>(scene.x->data()), 1, 4};
  EXPECT_TRUE(device
                  ->Launch(*scene.stream, *scene.kernel, {{1, 1, 1}, {4, 1, 1}, 100 << 10}, &params,
                           sizeof params)
                  .ok());
  EXPECT_TRUE(scene.stream->Synchronize().ok());
}

TEST_F(CudaDeviceTest, ModulesSayWhyTheyDoNotLoad) {
  const auto device = NewDevice();
  const std::string other = FakeCubin(110, {"mk_scale"}), newer = FakePtx(80, {"mk_scale"}, "9.0"),
                    broken = FakePtx(80, {"SYNTAX ERROR"}), text = FakePtx(80, {"mk_scale"});
  const auto refused = [&](const mk_kernel_image& image, const std::string& says) {
    const auto module = device->LoadModule(image);
    EXPECT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(module.status().message()).find(says), std::string::npos)
        << module.status();
  };
  refused(Image(MK_IMAGE_CUBIN, 110, 0, other), "CUDA_ERROR_NO_BINARY_FOR_GPU");
  refused(Image(MK_IMAGE_PTX, 80, 0, newer),
          "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the PTX was compiled with a newer toolchain; log: "
          "ptxas fatal: unsupported .version 9.0");
  refused(Image(MK_IMAGE_PTX, 80, 0, broken), "log: ptxas error: line 4");
  refused(Image(MK_IMAGE_CUBIN, 87, 0, "no image at all, whatever it be"),
          "CUDA_ERROR_INVALID_IMAGE");
  refused({MK_IMAGE_PTX, 80, 0, 0, text.data(), text.size() - 1}, "PTX does not end in NUL");
  refused({MK_IMAGE_EMULATED, 0, 0, 0, text.data(), 8}, "must be a cubin or PTX");
  refused({MK_IMAGE_CUBIN, 87, 0, 0, nullptr, 0}, "the image is empty");
  const auto module = device->LoadModule(Image(MK_IMAGE_PTX, 80, 0, text));
  ASSERT_TRUE(module.ok()) << module.status();
  const auto kernel = (*module)->Find("mk_other");
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(kernel.status().message().find("kernel 'mk_other': "), absl::string_view::npos);
  EXPECT_EQ(*(*module)->Find("mk_scale"), *(*module)->Find("mk_scale"));
}

TEST_F(CudaDeviceTest, GraphsReplayTheSameNumbers) {
  const auto device = NewDevice();
  const auto module = LoadScale(*device);
  Scene scene(*device, *module, 300);
  ASSERT_TRUE(scene.stream->BeginCapture().ok());
  ASSERT_TRUE(scene.Launch(*device, 2).ok());
  auto graph = scene.stream->EndCapture();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Counts().launches, 0u);  // recorded, not run
  EXPECT_EQ(Counts().graphs, 0u);    // only the executable stays
  for (int run = 1; run <= 3; ++run) {
    const std::vector<float> x(300, static_cast<float>(run));
    std::vector<float> y(300);
    ASSERT_TRUE(device->CopyToDevice(*scene.stream, scene.x->data(), x.data(), 1200).ok());
    ASSERT_TRUE(scene.stream->LaunchGraph(**graph).ok());
    ASSERT_TRUE(device->CopyToHost(*scene.stream, y.data(), scene.y->data(), 1200).ok());
    ASSERT_TRUE(scene.stream->Synchronize().ok());
    EXPECT_EQ(y[299], 2.0f * static_cast<float>(run));
  }
  EXPECT_EQ(Counts().graph_launches, 3u);
}

TEST_F(CudaDeviceTest, ACaptureThatWasBrokenIsSaidAndTheStreamGoesOn) {
  const auto device = NewDevice();
  const auto module = LoadScale(*device);
  Scene scene(*device, *module, 4);
  ASSERT_TRUE(scene.stream->BeginCapture().ok());
  ASSERT_TRUE(scene.Launch(*device, 2).ok());
  EXPECT_FALSE(scene.stream->Synchronize().ok());
  const auto graph = scene.stream->EndCapture();
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(graph.status().message().find("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
            absl::string_view::npos)
      << graph.status();
  EXPECT_TRUE(scene.Launch(*device, 2).ok());
  EXPECT_TRUE(scene.stream->Synchronize().ok());
}

TEST_F(CudaDeviceTest, OtherThreadsAllocateWhileOneCaptures) {
  const auto device = NewDevice();
  const auto module = LoadScale(*device);
  Scene scene(*device, *module, 4);
  ASSERT_TRUE(scene.stream->BeginCapture().ok());
  EXPECT_FALSE(device->Allocate(40 << 20).ok());  // not on this thread
  std::thread other([&] { EXPECT_TRUE(device->Allocate(40 << 20).ok()); });
  other.join();
  EXPECT_FALSE(scene.stream->EndCapture().ok());
}

TEST_F(CudaDeviceTest, EventsMeasure) {
  const auto device = NewDevice();
  const auto module = LoadScale(*device);
  Scene scene(*device, *module, 4);
  const auto begin = *device->NewEvent(), end = *device->NewEvent();
  ASSERT_TRUE(begin->Record(*scene.stream).ok());
  ASSERT_TRUE(scene.Launch(*device, 2).ok());
  ASSERT_TRUE(end->Record(*scene.stream).ok());
  EXPECT_FALSE(end->MillisecondsSince(*begin).ok());  // not there yet
  ASSERT_TRUE(end->Synchronize().ok());
  const auto elapsed = end->MillisecondsSince(*begin);
  ASSERT_TRUE(elapsed.ok());
  EXPECT_GT(*elapsed, 0);
}

TEST_F(CudaDeviceTest, LanesOfSeveralThreadsDoNotDisturbEachOther) {
  const auto device = NewDevice();
  const auto module = LoadScale(*device);
  std::vector<std::thread> lanes;
  std::atomic<int> wrong{0};
  for (int lane = 0; lane < 4; ++lane) {
    lanes.emplace_back([&, lane] {
      Scene scene(*device, *module, 64);
      for (int run = 0; run < 50; ++run) {
        const std::vector<float> x(64, static_cast<float>(run));
        std::vector<float> y(64);
        bool ok = device->CopyToDevice(*scene.stream, scene.x->data(), x.data(), 256).ok();
        ok = ok && scene.Launch(*device, static_cast<float>(lane)).ok();
        ok = ok && device->CopyToHost(*scene.stream, y.data(), scene.y->data(), 256).ok();
        ok = ok && scene.stream->Synchronize().ok();
        if (!ok || y[63] != static_cast<float>(run * lane)) ++wrong;
        if (!device->Canary().ok()) ++wrong;
      }
    });
  }
  for (auto& lane : lanes) lane.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(CudaDeviceTest, TwoDevicesAreTwoContexts) {
  FakeMachine machine;
  machine.devices = 2;
  Reset(machine);
  CudaOptions second = Options();
  second.ordinal = 1;
  const auto a = NewDevice(), b = NewDevice(second);
  EXPECT_EQ(Counts().contexts, 2u);
  const auto module_a = LoadScale(*a), module_b = LoadScale(*b);
  // In turn on one thread: each call makes its own context current.
  Scene scene_a(*a, *module_a, 4), scene_b(*b, *module_b, 4);
  EXPECT_TRUE(scene_a.Launch(*a, 1).ok());
  EXPECT_TRUE(scene_b.Launch(*b, 1).ok());
  EXPECT_TRUE(scene_a.stream->Synchronize().ok());
  EXPECT_TRUE(scene_b.stream->Synchronize().ok());
}

TEST_F(CudaDeviceTest, TheCanarySings) {
  const auto device = NewDevice();
  EXPECT_TRUE(device->Canary().ok());
  EXPECT_TRUE(device->Canary().ok());
}

}  // namespace
}  // namespace mk
