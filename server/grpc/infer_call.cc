#include "server/grpc/infer_call.h"

#include <grpcpp/server_context.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/run/validate.h"
#include "server/grpc/request_options.h"
#include "server/grpc/wire_request.h"
#include "server/grpc/wire_response.h"

namespace mk {
namespace {

class InferCall : public grpc::ServerUnaryReactor {
 public:
  InferCall(const InferBackend& backend, grpc::ByteBuffer* response)
      : backend_(backend), response_(response) {
    times_.received_ns = backend.clock.NowNs();
  }

  void Start(grpc::CallbackServerContext* context, const grpc::ByteBuffer& bytes) {
    auto job = std::make_unique<Job>();
    job->stop = stop_;
    const absl::Status status = Prepare(context, bytes, *job);
    if (!status.ok()) {
      End(status);
      return;
    }
    times_.queued_ns = backend_.clock.NowNs();
    job->times = times_;
    job->done = [this](Job& done, absl::StatusOr<InferResponse> result) {
      Complete(done, std::move(result));
    };
    // The handle is held on this stack too: the job may be done, and this call gone, before Submit
    // returns.
    const GenerationHandle generation = generation_;
    generation->executor().Submit(std::move(job));
  }

  void OnCancel() override { stop_->cancelled.store(true, std::memory_order_relaxed); }
  void OnDone() override { delete this; }

 private:
  absl::Status Prepare(grpc::CallbackServerContext* context, const grpc::ByteBuffer& bytes,
                       Job& job) {
    auto slices = std::make_shared<std::vector<grpc::Slice>>();
    if (!bytes.Dump(slices.get()).ok()) return absl::InternalError("the request cannot be read");
    std::vector<std::string_view> pieces;
    for (const grpc::Slice& slice : *slices) {
      pieces.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
      job.charged_bytes += slice.size();
    }
    MK_RETURN_IF_ERROR(ParseInferRequest(pieces, std::move(slices), backend_.pool, &job.request));
    id_ = job.request.id;
    MK_ASSIGN_OR_RETURN(const int64_t version,
                        ParseRequestedVersion(job.request.model_name, job.request.version_text));
    MK_ASSIGN_OR_RETURN(generation_, backend_.registry.Acquire(job.request.model_name, version));
    stats_ = backend_.stats.Get(generation_->name(), generation_->version());
    stats_->Begin();
    MK_ASSIGN_OR_RETURN(const RequestOptions options,
                        TakeReservedParameters(&job.request.parameters));
    stop_->deadline_ns = Deadline(context->deadline(), options.timeout_us);
    return ValidateRequest(generation_->signature(), job.request);
  }

  // The nearer of the client's gRPC deadline and its `timeout` parameter, on our clock.
  int64_t Deadline(std::chrono::system_clock::time_point deadline, int64_t timeout_us) const {
    int64_t end = INT64_MAX;
    const int64_t now = backend_.clock.NowNs();
    if (deadline != std::chrono::system_clock::time_point::max()) {
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
                            deadline - std::chrono::system_clock::now())
                            .count();
      if (left < INT64_MAX - now) end = now + left;
    }
    if (timeout_us != 0 && timeout_us < (INT64_MAX - now) / 1000) {
      end = std::min(end, now + timeout_us * 1000);
    }
    return end;
  }

  void Complete(Job& job, absl::StatusOr<InferResponse> result) {
    times_ = job.times;
    if (!result.ok()) {
      End(result.status());
      return;
    }
    *response_ =
        WriteInferResponse(generation_->name(), generation_->version(), id_, *std::move(result));
    End(absl::OkStatus());
  }

  // The last thing that happens here: gRPC may delete the call before Finish returns.
  void End(const absl::Status& status) {
    Record(status);
    generation_.reset();
    Finish(status.ok() ? grpc::Status::OK : ToGrpc(status));
  }

  void Record(const absl::Status& status) {
    if (stats_ == nullptr) {
      backend_.stats.unknown_model.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const int64_t now = backend_.clock.NowNs();
    RequestRecord record;
    record.outcome = OutcomeOf(static_cast<int>(status.code()));
    record.unix_ms = backend_.clock.UnixMillis();
    const auto set = [&](Stage stage, int64_t from, int64_t to) {
      if (from != 0 && to != 0) record.stage_ns[static_cast<size_t>(stage)] = to - from;
    };
    set(Stage::kInput, times_.received_ns, times_.queued_ns);
    set(Stage::kQueue, times_.queued_ns, times_.started_ns);
    set(Stage::kRun, times_.started_ns, times_.finished_ns);
    set(Stage::kOutput, times_.finished_ns, now);
    set(Stage::kRequest, times_.received_ns, now);
    stats_->Record(record);
  }

  const InferBackend& backend_;
  grpc::ByteBuffer* const response_;
  const std::shared_ptr<StopSignal> stop_ = std::make_shared<StopSignal>();
  GenerationHandle generation_;
  std::shared_ptr<ModelStats> stats_;
  std::string id_;
  RequestTimes times_;
};

}  // namespace

grpc::ServerUnaryReactor* StartInferCall(const InferBackend& backend,
                                         grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) {
  auto* call = new InferCall(backend, response);
  call->Start(context, *request);
  return call;
}

}  // namespace mk
