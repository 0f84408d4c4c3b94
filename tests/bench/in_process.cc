#include "tests/bench/in_process.h"

#include <cstring>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/device/arena.h"
#include "core/device/device.h"
#include "core/device/host_services.h"
#include "core/loader/registry.h"
#include "core/run/host_pool.h"
#include "core/run/run_model.h"
#include "core/run/validate.h"
#include "core/sched/lane_executor.h"

namespace mk {
namespace {

constexpr uint64_t kPoolBytes = 256u << 20;

// Runs each job at once, on the thread that submits it.
class DirectExecutor : public Executor {
 public:
  DirectExecutor(Generation& generation, std::unique_ptr<Arena> scratch, HostPool& outputs)
      : generation_(generation), outputs_(outputs), scratch_(std::move(scratch)) {}

  void Submit(std::unique_ptr<Job> job) override {
    absl::StatusOr<InferResponse> result = [&] {
      MutexLock lock(mutex_);
      return RunModel({generation_.pack(), generation_.model(), generation_.signature(), *scratch_,
                       outputs_, SystemClock()},
                      job->request, *job->stop);
    }();
    job->done(*job, std::move(result));
  }
  void Stop() override {}
  uint64_t queued() const override { return 0; }
  uint64_t running() const override { return 0; }

 private:
  Generation& generation_;
  HostPool& outputs_;
  Mutex mutex_;
  const std::unique_ptr<Arena> scratch_;
};

// Where a caller waits for its answer.
class Answer {
 public:
  void Put(absl::StatusOr<InferResponse> result) MK_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    result_ = std::move(result);
    come_.NotifyOne();
  }
  absl::StatusOr<InferResponse> Take() MK_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!result_) come_.Wait(mutex_);
    absl::StatusOr<InferResponse> result = *std::move(result_);
    result_.reset();
    return result;
  }

 private:
  Mutex mutex_;
  CondVar come_;
  std::optional<absl::StatusOr<InferResponse>> result_ MK_GUARDED_BY(mutex_);
};

absl::Status CheckAnswer(const BenchCase& bench_case, const InferResponse& response) {
  if (response.outputs.size() != 1) {
    return absl::InternalError(
        absl::StrCat(bench_case.name, ": ", response.outputs.size(), " outputs, expected 1"));
  }
  const HostBlock& block = response.outputs[0].block;
  if (bench_case.echoes &&
      (block.size() != bench_case.content.size() ||
       std::memcmp(block.data(), bench_case.content.data(), block.size()) != 0)) {
    return absl::InternalError(absl::StrCat(bench_case.name, ": the answer is not the input"));
  }
  return absl::OkStatus();
}

// One caller of the closed loop: latencies of what ended within the measured time.
struct Caller {
  std::vector<int64_t> latencies_ns;
  absl::Status status;

  void Loop(const Registry& registry, const BenchCase& bench_case, int64_t begin_ns,
            int64_t end_ns) {
    Answer answer;
    bool first = true;
    for (;;) {
      const int64_t sent_ns = SystemClock().NowNs();
      if (sent_ns >= end_ns) return;
      absl::StatusOr<InferResponse> response = Ask(registry, bench_case, &answer);
      const int64_t now_ns = SystemClock().NowNs();
      status = response.ok() && first ? CheckAnswer(bench_case, *response) : response.status();
      if (!status.ok()) return;
      first = false;
      if (sent_ns >= begin_ns && now_ns <= end_ns) latencies_ns.push_back(now_ns - sent_ns);
    }
  }

 private:
  // What the daemon does between decoding a request and encoding its answer.
  static absl::StatusOr<InferResponse> Ask(const Registry& registry, const BenchCase& bench_case,
                                           Answer* answer) {
    MK_ASSIGN_OR_RETURN(const GenerationHandle generation, registry.Acquire(bench_case.model, 0));
    auto job = std::make_unique<Job>();
    job->request.model_name = bench_case.model;
    job->request.inputs = {{bench_case.input, bench_case.dtype, bench_case.shape,
                            bench_case.content.data(), bench_case.content.size()}};
    MK_RETURN_IF_ERROR(ValidateRequest(generation->signature(), job->request));
    job->stop = std::make_shared<StopSignal>();
    job->charged_bytes = bench_case.content.size();
    job->done = [answer](Job&, absl::StatusOr<InferResponse> result) {
      answer->Put(std::move(result));
    };
    generation->executor().Submit(std::move(job));
    return answer->Take();
  }
};

class InProcessImpl : public InProcess {
 public:
  ~InProcessImpl() override {
    if (registry_) registry_->Shutdown();
  }

  absl::Status Open(const std::string& repository, InProcessWay way) {
    MK_ASSIGN_OR_RETURN(device_, NewCpuDevice(0));
    RegistryOptions options;
    options.root = repository;
    const auto no_probe = [](const SealedPack&) { return absl::OkStatus(); };
    MK_ASSIGN_OR_RETURN(registry_, Registry::Create(options, *device_, services_, pool_,
                                                    SystemClock(), Factory(way), {}, no_probe));
    return absl::OkStatus();
  }

  absl::StatusOr<LoadResult> Run(const BenchCase& bench_case, const LoadPlan& plan) override {
    if (loaded_.insert(bench_case.model).second) {
      MK_RETURN_IF_ERROR(registry_->Load(bench_case.model, std::nullopt));
    }
    const int64_t begin_ns =
        SystemClock().NowNs() + static_cast<int64_t>(plan.warmup_seconds * 1e9);
    const int64_t end_ns = begin_ns + static_cast<int64_t>(plan.seconds * 1e9);
    std::vector<Caller> callers(static_cast<size_t>(plan.concurrency));
    std::vector<std::thread> threads;
    for (Caller& caller : callers) {
      threads.emplace_back([&] { caller.Loop(*registry_, bench_case, begin_ns, end_ns); });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<int64_t> latencies;
    for (const Caller& caller : callers) {
      MK_RETURN_IF_ERROR(caller.status);
      latencies.insert(latencies.end(), caller.latencies_ns.begin(), caller.latencies_ns.end());
    }
    return Summarise(std::move(latencies), plan.seconds, -1);
  }

 private:
  ExecutorFactory Factory(InProcessWay way) {
    return [this, way](Generation& generation) -> absl::StatusOr<std::unique_ptr<Executor>> {
      if (way == InProcessWay::kLanes) {
        return NewLaneExecutor(generation, {}, pool_, SystemClock());
      }
      MK_ASSIGN_OR_RETURN(auto scratch,
                          Arena::Create(generation.device(), generation.memory(),
                                        generation.manifest().memory().scratch_bytes()));
      return std::make_unique<DirectExecutor>(generation, std::move(scratch), pool_);
    };
  }

  std::unique_ptr<Device> device_;
  HostServices services_{HostServicesOptions()};
  HostPool pool_{kPoolBytes, kPoolBytes};
  std::unique_ptr<Registry> registry_;
  std::set<std::string> loaded_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<InProcess>> InProcess::Open(const std::string& repository,
                                                           InProcessWay way) {
  auto opened = std::make_unique<InProcessImpl>();
  MK_RETURN_IF_ERROR(opened->Open(repository, way));
  return std::unique_ptr<InProcess>(std::move(opened));
}

}  // namespace mk
