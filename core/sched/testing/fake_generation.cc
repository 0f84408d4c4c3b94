#include "core/sched/testing/fake_generation.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mk {
namespace {

void Doze(int64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }

// Works for `work_ns` and as long as the gate is shut. False when it was told to stop.
bool Work(mk_model& model, const mk_run& run) {
  const int64_t end_ns = SystemClock().NowNs() + model.work_ns;
  for (;;) {
    if (model.polls && run.cancelled(run.self) != 0) return false;
    const int64_t left_ns = end_ns - SystemClock().NowNs();
    if (left_ns <= 0 && model.gate.load()) return true;
    Doze(left_ns > 0 && left_ns < 200'000 ? left_ns : 200'000);
  }
}

mk_status RunFake(mk_model* model, const mk_run* run) {
  model->started.fetch_add(1);
  const int running = model->running.fetch_add(1) + 1;
  int most = model->most_running.load();
  while (most < running && !model->most_running.compare_exchange_weak(most, running)) {
  }
  mk_i64 tag = -1;
  run->parameter_int64(run->self, "tag", &tag);
  {
    MutexLock lock(model->mutex);
    model->tags.push_back(tag);
  }
  const bool finished = (model->work_ns == 0 && model->gate.load()) || Work(*model, *run);
  model->running.fetch_sub(1);
  if (model->throws) throw std::runtime_error("thrown by the fake pack");
  if (!finished) return MK_CANCELLED;
  if (model->scratch_bytes > 0) {
    void* scratch = nullptr;
    const mk_status status = run->scratch(run->self, model->scratch_bytes, &scratch);
    if (status != MK_OK) return status;
    std::memset(scratch, 1, model->scratch_bytes);
  }
  const mk_i64 shape[] = {1};
  void* output = nullptr;
  const mk_status status = run->output(run->self, "y", MK_DTYPE_UINT8, 1, shape, 1, &output);
  if (status != MK_OK) return status;
  std::memcpy(output, run->inputs[0].data, 1);
  model->completed.fetch_add(1);
  return MK_OK;
}

}  // namespace

FakeGeneration::FakeGeneration(const Options& options)
    : options_(options),
      memory_({0, options.scratch_bytes * static_cast<uint64_t>(options.lanes), 0}) {
  manifest_.set_name(name_);
  manifest_.mutable_memory()->set_scratch_bytes(options.scratch_bytes);
  signature_.inputs = {{"x", MK_DTYPE_UINT8, {1}, false}};
  signature_.outputs = {{"y", MK_DTYPE_UINT8, {1}, false}};
  pack_.magic = MK_PACK_MAGIC;
  pack_.abi_major = MK_ABI_MAJOR;
  pack_.struct_size = sizeof pack_;
  pack_.name = "fake";
  pack_.build = "in the test";
  pack_.run = RunFake;
  auto device = NewCpuDevice(options.device_budget_bytes);
  if (!device.ok()) std::abort();
  device_ = *std::move(device);
}

Executor& FakeGeneration::executor() const { std::abort(); }

void Answer::Set(const Job& job, absl::StatusOr<InferResponse> result) {
  MutexLock lock(mutex_);
  ++times_done_;
  done_ns_ = SystemClock().NowNs();
  times_ = job.times;
  status_ = result.status();
  if (result.ok()) {
    const HostBlock& block = result->outputs.at(0).block;
    const auto* bytes = static_cast<const uint8_t*>(block.data());
    output_.assign(bytes, bytes + block.size());
  }
  changed_.NotifyAll();
}

void Answer::Wait() {
  MutexLock lock(mutex_);
  while (times_done_ == 0) changed_.Wait(mutex_);
}

bool Answer::done() const { return times_done() > 0; }

int Answer::times_done() const {
  MutexLock lock(mutex_);
  return times_done_;
}

absl::StatusCode Answer::code() const {
  MutexLock lock(mutex_);
  return times_done_ == 0 ? absl::StatusCode::kUnknown : status_.code();
}

std::string Answer::message() const {
  MutexLock lock(mutex_);
  return std::string(status_.message());
}

std::vector<uint8_t> Answer::output() const {
  MutexLock lock(mutex_);
  return output_;
}

RequestTimes Answer::times() const {
  MutexLock lock(mutex_);
  return times_;
}

int64_t Answer::done_ns() const {
  MutexLock lock(mutex_);
  return done_ns_;
}

std::unique_ptr<Job> MakeJob(const Sent& sent, int64_t tag, uint64_t charged_bytes) {
  auto job = std::make_unique<Job>();
  auto byte = std::make_shared<uint8_t>(static_cast<uint8_t>(tag));
  InputTensor input;
  input.name = "x";
  input.dtype = MK_DTYPE_UINT8;
  input.shape = {1};
  input.data = byte.get();
  input.size_bytes = 1;
  job->request.model_name = "fake";
  job->request.inputs.push_back(std::move(input));
  job->request.parameters.emplace_back("tag", tag);
  job->request.keep_alive = std::move(byte);
  job->stop = sent.stop;
  job->charged_bytes = charged_bytes;
  job->times.received_ns = SystemClock().NowNs();
  job->done = [answer = sent.answer](Job& done, absl::StatusOr<InferResponse> result) {
    answer->Set(done, std::move(result));
  };
  return job;
}

Sent Send(Executor& executor, int64_t tag, int64_t deadline_ns, uint64_t charged_bytes) {
  Sent sent;
  sent.stop->deadline_ns = deadline_ns;
  executor.Submit(MakeJob(sent, tag, charged_bytes));
  return sent;
}

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    Doze(1'000'000);
  }
  return false;
}

}  // namespace mk
