// Load, swap, unload and look-up, in process: the probe is the real one's code, run here.
#include "core/loader/registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/run/validate.h"
#include "core/weights/testing/write_safetensors.h"
#include "tests/packs/pack_builder.h"

namespace mk {
namespace {

using absl::StatusCode;

bool Says(const absl::Status& status, const std::string& part) {
  return std::string(status.message()).find(part) != std::string::npos;
}

// Runs each job at once, on the thread that submits it.
class InlineExecutor : public Executor {
 public:
  InlineExecutor(Generation& generation, HostPool& outputs, std::unique_ptr<Arena> arena)
      : generation_(generation), outputs_(outputs), arena_(std::move(arena)) {}
  static absl::StatusOr<std::unique_ptr<Executor>> Make(Generation& generation, HostPool& outputs) {
    auto arena = Arena::Create(generation.device(), generation.memory(),
                               generation.manifest().memory().scratch_bytes());
    if (!arena.ok()) return arena.status();
    return std::make_unique<InlineExecutor>(generation, outputs, *std::move(arena));
  }
  void Submit(std::unique_ptr<Job> job) override {
    MutexLock lock(mutex_);
    auto result = RunModel({generation_.pack(), generation_.model(), generation_.signature(),
                            *arena_, outputs_, SystemClock()},
                           job->request, *job->stop);
    job->done(*job, std::move(result));
  }
  void Stop() override {}
  uint64_t queued() const override { return 0; }
  uint64_t running() const override { return 0; }

 private:
  Generation& generation_;
  HostPool& outputs_;
  Mutex mutex_;
  const std::unique_ptr<Arena> arena_;
};

class RegistryTest : public testing::Test {
 protected:
  void Start(RegistryOptions options = {}) {
    options.root = repository_.root();
    if (options.drain_timeout_seconds == 30) options.drain_timeout_seconds = 5;
    Registry::Hooks hooks;
    hooks.on_event = [this](const SwapEvent& event) {
      MutexLock lock(mutex_);
      events_.push_back(event);
    };
    auto registry = Registry::Create(
        options, *device_, services_, outputs_, clock_,
        [this](Generation& g) {
          if (during_lanes_) during_lanes_();
          return InlineExecutor::Make(g, outputs_);
        },
        hooks,
        [this](const SealedPack&) {
          if (during_probe_) during_probe_();
          return probe_status_;
        });
    ASSERT_TRUE(registry.ok()) << registry.status();
    registry_ = *std::move(registry);
  }

  absl::StatusOr<InferResponse> Infer(const std::string& name, int64_t version = 0) {
    auto generation = registry_->Acquire(name, version);
    if (!generation.ok()) return generation.status();
    return Run(*generation);
  }
  static absl::StatusOr<InferResponse> Run(const GenerationHandle& generation) {
    auto job = std::make_unique<Job>();
    const TensorSpec& spec = generation->signature().inputs[0];
    static constexpr float kX[2] = {3, 4};
    const bool floats = spec.dtype == MK_DTYPE_FP32;
    job->request.inputs = {{spec.name, spec.dtype, {2}, kX, floats ? 8u : 2u}};
    job->stop = std::make_shared<StopSignal>();
    absl::StatusOr<InferResponse> out = absl::UnknownError("not done");
    job->done = [&out](Job&, absl::StatusOr<InferResponse> r) { out = std::move(r); };
    generation->executor().Submit(std::move(job));
    return out;
  }
  // The fixtures answer with the version of their code.
  int64_t Version(const std::string& name, int64_t version = 0) {
    const auto response = Infer(name, version);
    if (!response.ok()) return -1;
    int64_t value;
    std::memcpy(&value, response->outputs[0].block.data(), 8);
    return value;
  }
  std::string Reason(const std::string& name, int64_t version) {
    for (const IndexEntry& entry : registry_->Index()) {
      if (entry.name == name && entry.version == version) {
        return std::string(PackStateName(entry.state)) + ": " + entry.reason;
      }
    }
    return "not in the index";
  }

  void TearDown() override {
    if (registry_) registry_->Shutdown();
    registry_.reset();
    EXPECT_EQ(device_->in_use_bytes(), 0u);
    EXPECT_EQ(outputs_.in_use_bytes(), 0u);
  }

  TestRepository repository_;
  std::unique_ptr<Device> device_ = *NewCpuDevice(64 << 20);
  HostServices services_{{1, 1 << 20}};
  HostPool outputs_{64 << 20, 0};
  FakeClock clock_;
  absl::Status probe_status_;
  std::function<void()> during_probe_, during_lanes_;
  Mutex mutex_;
  std::vector<SwapEvent> events_;
  std::unique_ptr<Registry> registry_;
};

TEST_F(RegistryTest, LoadsServesAndUnloads) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  Start();
  EXPECT_EQ(registry_->Acquire("p", 0).status().code(), StatusCode::kUnavailable);
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  EXPECT_EQ(Version("p"), 1);
  EXPECT_EQ(*registry_->State("p", 1), PackState::kReady);
  ASSERT_TRUE(registry_->Unload("p").ok());
  EXPECT_EQ(Infer("p").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(device_->in_use_bytes(), 0u);
  EXPECT_EQ(registry_->retired_mappings(), 0u);
  EXPECT_TRUE(registry_->Unload("p").ok());
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_TRUE(events_[1].outcome.ok());
}

TEST_F(RegistryTest, UnknownNamesAndVersionsAreToldFromUnready) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  Start();
  EXPECT_EQ(registry_->Acquire("nope", 0).status(),
            absl::NotFoundError("Request for unknown model: 'nope' is not found"));
  EXPECT_EQ(registry_->Acquire("p", 3).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(registry_->Acquire("../p", 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(registry_->Load("nope", {}).code(), StatusCode::kNotFound);
  EXPECT_EQ(registry_->Load("../p", {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(registry_->Unload("nope").code(), StatusCode::kNotFound);
}

// Field case B13: only canonical version folders count, the default is the highest number, a folder
// without a manifest is told as incomplete.
TEST_F(RegistryTest, B13OnlyCanonicalVersionsCount) {
  for (const int64_t v : {1, 2, 10}) repository_.Install("p", v, FixtureSpec("version1"));
  for (const char* folder : {"03", "v4", "9", "11.tmp"}) {
    std::filesystem::create_directories(repository_.root() + "/p/" + folder);
  }
  Start();
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  EXPECT_EQ((*registry_->Acquire("p", 0))->version(), 10);
  EXPECT_EQ(registry_->Acquire("p", 3).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Reason("p", 9), "UNAVAILABLE: incomplete: it has no manifest");
  EXPECT_EQ(Reason("p", 11), "not in the index");
}

TEST_F(RegistryTest, APolicyThatCouldNotBeMetIsForgotten) {
  for (const int64_t v : {1, 2}) repository_.Install("p", v, FixtureSpec("version1"));
  Start();
  EXPECT_FALSE(registry_->Load("p", ParseVersionPolicy("7").value()).ok());
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  EXPECT_EQ((*registry_->Acquire("p", 0))->version(), 2);
}

// Field case B02: the same file name and SONAME, other code: each version runs its own, side by
// side and in turn.
TEST_F(RegistryTest, B02EachVersionRunsItsOwnCode) {
  repository_.Install("p", 1, FixtureSpec("version1", 1));
  repository_.Install("p", 2, FixtureSpec("version2", 2));
  Start();
  ASSERT_TRUE(registry_->Load("p", ParseVersionPolicy("1").value()).ok());
  EXPECT_EQ(Version("p"), 1);
  ASSERT_TRUE(registry_->Load("p", ParseVersionPolicy("all").value()).ok());
  EXPECT_EQ(Version("p", 1), 1);
  EXPECT_EQ(Version("p", 2), 2);
  ASSERT_TRUE(registry_->Load("p", ParseVersionPolicy("2").value()).ok());
  EXPECT_EQ(Version("p"), 2);
  EXPECT_EQ(Infer("p", 1).status().code(), StatusCode::kUnavailable);
  // Another inode's content under the first version's name, by a hard link.
  PackSpec two = FixtureSpec("version2", 2);
  repository_.Install("p", 1, two);
  ASSERT_TRUE(registry_->Load("p", ParseVersionPolicy("1").value()).ok());
  EXPECT_EQ(Version("p"), 2);
}

// Field case B01: overwriting and truncating what is served changes nothing, and is told.
TEST_F(RegistryTest, B01FilesOverwrittenInPlaceDoNotDisturbWhatServes) {
  repository_.Install("p", 1,
                      AffineSpec(WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, 1})}})));
  Start();
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  const std::string folder = repository_.Folder("p", 1);
  const auto check = [&] {
    const auto response = Infer("p");
    ASSERT_TRUE(response.ok()) << response.status();
    float y[2];
    std::memcpy(y, response->outputs[0].block.data(), 8);
    EXPECT_EQ(y[0], 7.0f);
    EXPECT_EQ(y[1], 9.0f);
  };
  check();
  WriteFile(folder + "/pack.so", ReadRunfile("tests/packs/version2.so"));
  check();
  for (const char* file : {"/pack.so", "/model.safetensors", "/manifest.textproto"}) {
    WriteFile(folder + file, "");
    check();
  }
  EXPECT_EQ(Reason("p", 1), "READY: other content on disk");
  EXPECT_FALSE(registry_->Load("p", {}).ok());
  check();
  EXPECT_TRUE(registry_->Unload("p").ok());
}

// Field case B08: a failed reload fails every time, with one message, and the old generation serves
// on.
TEST_F(RegistryTest, B08AFailedReloadFailsEveryTimeAndKeepsTheOld) {
  const std::string good = WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, 1})}});
  repository_.Install("p", 1, AffineSpec(good));
  Start();
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  std::string bad = good;
  bad[0] = static_cast<char>(bad[0] ^ 1);
  repository_.Install("p", 1, AffineSpec(bad));
  const absl::Status first = registry_->Load("p", {});
  EXPECT_TRUE(Says(first, "load failed for model 'p': version 1: ")) << first;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(registry_->Load("p", {}), first);
    EXPECT_TRUE(Infer("p").ok());
  }
  EXPECT_EQ(Reason("p", 1).rfind("READY: ", 0), 0u);
  EXPECT_GT(Reason("p", 1).size(), 10u);
  repository_.Install("p", 1, AffineSpec(good));
  EXPECT_TRUE(registry_->Load("p", {}).ok());
}

TEST_F(RegistryTest, AProbeThatRefusesKeepsThePackOutOfTheProcess) {
  repository_.Install("p", 1, FixtureSpec("create_segfaults"));
  Start();
  probe_status_ = absl::InvalidArgumentError("probe: the pack crashed: Segmentation fault");
  EXPECT_TRUE(Says(registry_->Load("p", {}), "crashed"));
  EXPECT_TRUE(Reason("p", 1).find("crashed") != std::string::npos) << Reason("p", 1);
}

TEST_F(RegistryTest, ALoadOfTheSameContentIsNoNewGeneration) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  Start();
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  const uint64_t id = (*registry_->Acquire("p", 0))->id();
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  EXPECT_EQ((*registry_->Acquire("p", 0))->id(), id);
}

TEST_F(RegistryTest, MemoryIsAdmittedBeforeThePackIsTried) {
  PackSpec spec = FixtureSpec("version1");
  spec.manifest.mutable_memory()->set_scratch_bytes(20 << 20);
  repository_.Install("p", 1, spec);
  Start();
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  spec.manifest.mutable_memory()->set_scratch_bytes(50 << 20);
  repository_.Install("p", 1, spec);
  probe_status_ = absl::InternalError("the probe must not run");
  const absl::Status status = registry_->Load("p", {});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_TRUE(Says(status, "declares 52428800 bytes")) << status;
  EXPECT_EQ(Version("p"), 1);
}

// A request in flight, and a handle held, keep their generation: it is unloaded after the last,
// never under it.
TEST_F(RegistryTest, AHeldGenerationIsUnloadedAfterItsLastRelease) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  RegistryOptions options;
  options.drain_timeout_seconds = 0.05;
  Start(options);
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  GenerationHandle held = *registry_->Acquire("p", 0);
  EXPECT_EQ(registry_->Unload("p").code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Infer("p").status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(Run(held).ok());
  EXPECT_EQ(*registry_->State("p", 1), PackState::kUnloading);
  held.reset();
  for (int i = 0; i < 400 && *registry_->State("p", 1) == PackState::kUnloading; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(*registry_->State("p", 1), PackState::kUnavailable);
}

TEST_F(RegistryTest, WhatWasOnTrialWhenTheDaemonDiedIsQuarantined) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  RegistryOptions options;
  options.state_file = repository_.root() + "-state";
  Start(options);
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  const std::string during_trial = ReadFileOrEmpty(options.state_file);
  EXPECT_EQ(during_trial.size(), 65u);
  ASSERT_TRUE(registry_->Unload("p").ok());
  EXPECT_EQ(ReadFileOrEmpty(options.state_file), "");
  registry_->Shutdown();
  registry_.reset();
  // As if the daemon had died in the trial.
  WriteFile(options.state_file, during_trial);
  Start(options);
  EXPECT_TRUE(Says(registry_->Load("p", {}), "quarantined"));
  PackSpec other = FixtureSpec("version1");
  other.manifest.set_description("new content");
  repository_.Install("p", 1, other);
  EXPECT_TRUE(registry_->Load("p", {}).ok());
  std::filesystem::remove(options.state_file);
}

// Field case B11: load and unload from two threads; the order of the calls decides, nothing
// crashes, nothing is left.
TEST_F(RegistryTest, B11LoadAndUnloadRace) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  Start();
  for (int round = 0; round < 40; ++round) {
    std::thread load([&] { EXPECT_TRUE(registry_->Load("p", {}).ok()); });
    std::thread unload([&] { EXPECT_TRUE(registry_->Unload("p").ok()); });
    load.join();
    unload.join();
    const PackState state = *registry_->State("p", 1);
    EXPECT_EQ(state == PackState::kReady, Infer("p").ok());
  }
  EXPECT_TRUE(registry_->Load("p", {}).ok());
  EXPECT_EQ(Version("p"), 1);
}

// Field case B10 in small: requests from several threads while versions change under them; none
// fails.
TEST_F(RegistryTest, B10NoRequestFailsWhileVersionsAreSwapped) {
  repository_.Install("p", 1, FixtureSpec("version1", 1));
  Start();
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  std::atomic<bool> stop{false};
  std::atomic<int> served{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] {
      while (!stop) {
        const int64_t version = Version("p");
        ASSERT_TRUE(version == 1 || version == 2) << version;
        ++served;
      }
    });
  }
  for (int swap = 0; swap < 10; ++swap) {
    PackSpec spec = FixtureSpec(swap % 2 ? "version1" : "version2", swap % 2 ? 1 : 2);
    spec.manifest.set_description(std::to_string(swap));
    repository_.Install("p", swap + 2, spec);
    EXPECT_TRUE(registry_->Load("p", {}).ok());
  }
  stop = true;
  for (auto& client : clients) client.join();
  EXPECT_GT(served.load(), 0);
  EXPECT_EQ(registry_->retired_mappings(), 0u);
}

TEST_F(RegistryTest, GoldenVectorsWarmTheLanesAndGuardTheSwitch) {
  PackSpec spec = AffineSpec(WriteSafetensors({{"w", "F32", {2}, FloatBytes({2, 1})}}));
  spec.manifest.mutable_golden()->set_file("golden.safetensors");
  spec.manifest.mutable_golden()->set_max_rel_l2(1e-6);
  const auto golden = [](float answer) {
    return WriteSafetensors({{"case0.input.X", "F32", {1}, FloatBytes({3})},
                             {"case0.output.Y", "F32", {1}, FloatBytes({answer})}});
  };
  spec.small["golden.safetensors"] = golden(7);
  repository_.Install("p", 1, spec);
  Start();
  EXPECT_TRUE(registry_->Load("p", {}).ok());
  spec.small["golden.safetensors"] = golden(8);
  repository_.Install("p", 1, spec);
  const absl::Status status = registry_->Load("p", {});
  EXPECT_TRUE(Says(status, "golden case 0, output 'Y'")) << status;
  EXPECT_TRUE(Infer("p").ok());
}

TEST_F(RegistryTest, ShutdownRefusesWhatComesAfter) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  Start();
  ASSERT_TRUE(registry_->Load("p", {}).ok());
  registry_->Shutdown();
  EXPECT_EQ(registry_->Acquire("p", 0).status(), absl::UnavailableError("Server is stopping"));
  EXPECT_EQ(registry_->Load("p", {}).code(), StatusCode::kUnavailable);
}

// Field case B05, here: a load that the end of the daemon meets half-way never serves and leaves
// nothing.
TEST_F(RegistryTest, B05ALoadUnderWayAtShutdownNeverServes) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  for (auto* moment : {&during_probe_, &during_lanes_}) {
    Start();
    *moment = [this] { registry_->Shutdown(); };
    EXPECT_EQ(registry_->Load("p", {}).code(), StatusCode::kUnavailable);
    EXPECT_TRUE(registry_->Serving().empty());
    EXPECT_EQ(registry_->Acquire("p", 0).status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(device_->in_use_bytes(), 0u);
    *moment = nullptr;
    registry_.reset();
  }
}

// Field case B16: two packs bring code of one name; each runs its own, and one's end does not touch
// the other.
TEST_F(RegistryTest, B16PacksWithCodeOfOneNameDoNotMeet) {
  repository_.Install("x", 1, FixtureSpec("version1", 1));
  repository_.Install("y", 1, FixtureSpec("version2", 2));
  Start();
  ASSERT_TRUE(registry_->Load("x", {}).ok());
  ASSERT_TRUE(registry_->Load("y", {}).ok());
  EXPECT_EQ(Version("x"), 1);
  EXPECT_EQ(Version("y"), 2);
  ASSERT_TRUE(registry_->Unload("x").ok());
  EXPECT_EQ(Version("y"), 2);
}

// The code of a file that is missing is the pack's fault, not an unknown name.
TEST_F(RegistryTest, AVersionWithAMissingFileIsABadPack) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  std::filesystem::remove(repository_.Folder("p", 1) + "/pack.so");
  Start();
  const absl::Status status = registry_->Load("p", {});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(Says(status, "file 'pack.so': No such file")) << status;
}

// 100 load/swap/unload cycles leave mappings and descriptors as they were after the tenth.
TEST_F(RegistryTest, CyclesLeaveNothingBehind) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  Start();
  const auto count = [](const char* folder) {
    size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      n += entry.exists() ? 1 : 0;
    return n;
  };
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    size_t lines = 0;
    for (std::string line; std::getline(maps, line);) lines += line.find("mk-") != line.npos;
    return lines;
  };
  size_t fds = 0;
  for (int cycle = 0; cycle < 100; ++cycle) {
    ASSERT_TRUE(registry_->Load("p", {}).ok());
    ASSERT_EQ(Version("p"), 1);
    ASSERT_TRUE(registry_->Unload("p").ok());
    if (cycle == 10) fds = count("/proc/self/fd");
  }
  EXPECT_EQ(count("/proc/self/fd"), fds);
  EXPECT_EQ(mappings(), 0u);
}

}  // namespace
}  // namespace mk
