#include "server/main/daemon.h"

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/program.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "core/device/device.h"
#include "core/device/host_services.h"
#include "core/device/open_device.h"
#include "core/loader/registry.h"
#include "core/metrics/model_stats.h"
#include "core/sched/lane_executor.h"
#include "server/admin/control_pool.h"
#include "server/grpc/service.h"
#include "server/main/notify.h"
#include "server/main/snapshot.h"
#include "server/metrics/metrics_endpoint.h"

namespace mk {
namespace {

constexpr int kControlThreads = 4;
constexpr auto kCanaryInterval = std::chrono::seconds(2);
// With a lost device there is nothing to drain but the answers that say so.
constexpr double kLostDrainSeconds = 2;
constexpr auto kLostEndsWithin = std::chrono::seconds(10);

// Requests of a MiB must not fault their pages in anew each time (+35 to 54 % throughput measured
// on a bare server); what is kept for that is bounded.
void TuneMalloc() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

// Asks the device now and then whether it answers, and tells readiness, health and systemd's
// watchdog.
class Canary {
 public:
  Canary(Device& device, std::function<void(bool)> on_change)
      : device_(device), on_change_(std::move(on_change)), thread_([this] { Loop(); }) {}
  ~Canary() {
    {
      MutexLock lock(mutex_);
      ending_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }

 private:
  void Loop() MK_EXCLUDES(mutex_) {
    const uint64_t watchdog = WatchdogMicros();
    const std::chrono::nanoseconds interval =
        watchdog == 0 ? std::chrono::nanoseconds(kCanaryInterval)
                      : std::chrono::nanoseconds(std::chrono::microseconds(watchdog / 2));
    bool well = true;
    for (;;) {
      const bool now = device_.Canary().ok();
      if (now) NotifyWatchdog();  // a device that does not answer lets systemd restart us
      if (now != well) on_change_(now);
      well = now;
      MutexLock lock(mutex_);
      if (!ending_) changed_.WaitFor(mutex_, interval);
      if (ending_) return;
    }
  }

  Device& device_;
  const std::function<void(bool)> on_change_;
  Mutex mutex_;
  CondVar changed_;
  bool ending_ MK_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

class Daemon {
 public:
  Daemon(const DaemonOptions& options, Logger& logger)
      : options_(options), config_(options.config), logger_(logger) {}

  absl::Status Start() {
    TuneMalloc();
    MK_RETURN_IF_ERROR(StartDevice());
    HostServicesOptions services;
    services.threads = config_.threads;
    services.max_image_pixels = config_.max_image_pixels;
    services_ = std::make_unique<HostServices>(services);
    pool_ = std::make_unique<HostPool>(config_.output_pool_bytes,
                                       std::min<uint64_t>(config_.output_pool_bytes, 64 << 20));
    admission_ = std::make_shared<GlobalAdmission>(
        QueueLimits{config_.total_max_requests, config_.total_max_bytes});
    MK_RETURN_IF_ERROR(StartRegistry());
    MK_RETURN_IF_ERROR(StartServers());
    LoadPacks();
    MK_RETURN_IF_ERROR(device_->lost());  // a pack may have been its end
    SetReady(true);
    canary_ = std::make_unique<Canary>(*device_, [this](bool well) {
      logger_.Log(well ? 1 : 3, well ? "the device answers again" : "the device does not answer");
      SetReady(well);
    });
    return TellReady();
  }

  // Whether the device was not there, and whether it went.
  bool no_device() const { return device_ == nullptr; }
  bool lost() const { return lost_.load(); }
  absl::Status why_lost() const { return device_->lost(); }

  // Order: nobody is told to come, nobody new comes in, those inside finish, then all is given
  // back.
  void Stop() {
    logger_.Info("stopping: draining");
    NotifyStopping();
    stopping_ = true;
    canary_.reset();
    ready_ = false;
    if (grpc_) {
      grpc_->SetServing(false);
      grpc_->Stop(lost() ? std::min(kLostDrainSeconds, config_.drain_timeout_seconds)
                         : config_.drain_timeout_seconds);
    }
    control_.Stop();
    if (registry_) registry_->Shutdown();
    metrics_.reset();
    // The hooks speak to the gRPC server; none of them comes after the registry.
    registry_.reset();
    grpc_.reset();
    if (!options_.ready_file.empty()) std::remove(options_.ready_file.c_str());
    logger_.Info("stopped");
  }

 private:
  // What was asked for, or nothing: there is no other device behind it.
  absl::Status StartDevice() {
    OpenDeviceOptions options;
    options.name = config_.device;
    options.budget_bytes = config_.device_budget_bytes;
    options.log = [this](int level, const std::string& message) { logger_.Log(level, message); };
    options.on_lost = [this](const absl::Status& why) { OnLost(why); };
    MK_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, OpenDevice(options));
    MK_RETURN_IF_ERROR(device->Canary());
    device_ = std::move(device);
    const DeviceFacts& facts = device_->facts();
    logger_.Info(absl::StrCat("device ", facts.kind, ": ", facts.name, ", ", facts.compute_units,
                              facts.kind == "cpu" ? " cores" : " SMs", ", budget ",
                              facts.budget_bytes, " bytes"));
    return absl::OkStatus();
  }

  // On the thread of the call that failed, which waits for us.
  void OnLost(const absl::Status& why) {
    lost_ = true;
    ready_ = false;
    if (GrpcServer* server = grpc_.get()) server->SetServing(false);
    logger_.Log(3, absl::StrCat("the device is lost, ending for a restart: ", why.message()));
    if (!stopping_) kill(getpid(), SIGTERM);
  }

  // Never ready on a lost device, whoever says so and in whatever order.
  void SetReady(bool ready) {
    ready_ = ready && !lost_;
    grpc_->SetServing(ready_);
    if (ready && lost_) {
      ready_ = false;
      grpc_->SetServing(false);
    }
  }

  absl::Status StartRegistry() {
    RegistryOptions options;
    options.root = config_.repository;
    options.probe_path =
        config_.probe_path.empty() ? BesideOwnProgram("mergekernel-probe") : config_.probe_path;
    if (access(options.probe_path.c_str(), X_OK) != 0) {
      return absl::NotFoundError(
          absl::StrCat("probe_path '", options.probe_path, "' is no program that can be started"));
    }
    options.probe_timeout_seconds = config_.probe_timeout_seconds;
    options.probe_device = config_.device;
    if (config_.device != "cpu") options.probe_environment = options_.driver_environment;
    options.drain_timeout_seconds = config_.drain_timeout_seconds;
    MK_ASSIGN_OR_RETURN(options.default_policy, ParseVersionPolicy(config_.version_policy));
    if (!config_.state_dir.empty()) options.state_file = config_.state_dir + "/quarantine";
    Registry::Hooks hooks;
    hooks.log = [this](int level, const std::string& message) { logger_.Log(level, message); };
    hooks.on_state = [this](const std::string& name, int64_t version, PackState state) {
      if (GrpcServer* server = grpc_.get()) server->SetPackState(name, version, state);
    };
    hooks.on_event = [this](const SwapEvent& event) { OnEvent(event); };
    LaneOptions lanes;
    lanes.limits = {config_.queue_max_requests, config_.queue_max_bytes};
    lanes.global = admission_;
    MK_ASSIGN_OR_RETURN(registry_, Registry::Create(
                                       options, *device_, *services_, *pool_, SystemClock(),
                                       [this, lanes](Generation& generation) {
                                         return NewLaneExecutor(generation, lanes, *pool_,
                                                                SystemClock());
                                       },
                                       hooks));
    return absl::OkStatus();
  }

  void OnEvent(const SwapEvent& event) {
    static constexpr const char* kKinds[] = {"load", "swap", "unload"};
    stats_.RecordSwap(event.name, kKinds[static_cast<int>(event.kind)], event.outcome.ok(),
                      event.seconds);
    // While stopping the registry may be half gone, and nobody reads these numbers any more.
    if (event.kind == SwapEvent::Kind::kUnload && !stopping_ &&
        !registry_->Acquire(event.name, event.version).ok()) {
      stats_.Drop(event.name, event.version);
    }
  }

  absl::Status StartServers() {
    GrpcOptions options;
    options.address = config_.grpc_address;
    options.max_message_bytes = config_.max_message_bytes;
    options.keepalive_min_interval_ms = config_.keepalive_min_interval_ms;
    options.memory_quota_bytes = static_cast<int64_t>(config_.total_max_bytes) + (256 << 20);
    options.version = kVersion;
    options.device = absl::StrCat(device_->facts().kind, ": ", device_->facts().name);
    MK_ASSIGN_OR_RETURN(
        grpc_,
        GrpcServer::Create(options, {*registry_, *pool_, stats_, SystemClock()}, control_, ready_));
    if (config_.metrics_address.empty()) return absl::OkStatus();
    const SnapshotSources sources = {
        *device_, *registry_, *pool_, stats_, *admission_, SystemClock(), SystemClock().NowNs()};
    MK_ASSIGN_OR_RETURN(metrics_, MetricsEndpoint::Create(config_.metrics_address, [this, sources] {
                          return TakeSnapshot(sources, ready_.load());
                        }));
    return absl::OkStatus();
  }

  // A pack that does not load is told in the log and the index; the others serve.
  void LoadPacks() {
    std::vector<std::string> names = config_.load;
    if (names.size() == 1 && names[0] == "*") {
      names.clear();
      for (const IndexEntry& entry : registry_->Index()) {
        if (names.empty() || names.back() != entry.name) names.push_back(entry.name);
      }
    }
    for (const std::string& name : names) {
      const absl::Status status = registry_->Load(name, std::nullopt);
      if (!status.ok()) logger_.Log(3, std::string(status.message()));
    }
  }

  absl::Status TellReady() {
    const std::string metrics = metrics_ ? metrics_->address() : "";
    const size_t packs = registry_->Serving().size();
    logger_.Info(absl::StrCat("ready grpc=", grpc_->address(),
                              " metrics=", metrics.empty() ? "off" : metrics,
                              " device=", device_->facts().kind, " packs=", packs));
    NotifyReady(absl::StrCat("serving ", packs, " packs on ", grpc_->address()));
    if (options_.ready_file.empty()) return absl::OkStatus();
    // Written beside and renamed: whoever waits for the file finds it whole.
    const std::string beside = options_.ready_file + ".new";
    {
      std::ofstream out(beside, std::ios::trunc);
      out << nlohmann::json{{"grpc", grpc_->address()}, {"metrics", metrics}, {"pid", getpid()}}
                 .dump()
          << "\n";
      if (!out.good())
        return absl::InternalError(absl::StrCat("cannot write ", options_.ready_file));
    }
    if (std::rename(beside.c_str(), options_.ready_file.c_str()) != 0) {
      return absl::InternalError(absl::StrCat("cannot write ", options_.ready_file));
    }
    return absl::OkStatus();
  }

  const DaemonOptions options_;
  const Config& config_;
  Logger& logger_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> lost_{false};
  StatsTable stats_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<HostServices> services_;
  std::unique_ptr<HostPool> pool_;
  std::shared_ptr<GlobalAdmission> admission_;
  ControlPool control_{kControlThreads};
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<MetricsEndpoint> metrics_;
  std::unique_ptr<Canary> canary_;
};

}  // namespace

DaemonEnd RunDaemon(const DaemonOptions& options, Logger& logger) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  Daemon daemon(options, logger);
  absl::Status status = daemon.Start();
  if (!status.ok() && daemon.no_device()) return {status, kExitNoDevice};
  if (status.ok()) {
    int signal = 0;
    sigwait(&signals, &signal);
    // Whoever asks twice does not want to wait.
    const bool lost = daemon.lost();
    std::thread([signals, lost] {
      int again = 0;
      sigwait(&signals, &again);
      _exit(lost ? kExitDeviceLost : kExitFailed);
    }).detach();
  }
  if (daemon.lost()) {
    // A driver in that state may hang where it should fail.
    std::thread([] {
      std::this_thread::sleep_for(kLostEndsWithin);
      _exit(kExitDeviceLost);
    }).detach();
    status = daemon.why_lost();
  }
  daemon.Stop();
  return {status, daemon.lost() ? kExitDeviceLost : status.ok() ? kExitOk : kExitFailed};
}

}  // namespace mk
