#include "server/grpc/service.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "proto/inference/grpc_service.grpc.pb.h"
#include "server/admin/control_pool.h"
#include "server/grpc/model_views.h"
#include "server/grpc/request_options.h"
#include "server/grpc/wire_response.h"

namespace mk {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using inference::GRPCInferenceService;

// All methods by callback, ModelInfer over raw bytes.
using Base =
    GRPCInferenceService::WithRawCallbackMethod_ModelInfer<GRPCInferenceService::CallbackService>;

ServerUnaryReactor* Finish(CallbackServerContext* context, const absl::Status& status) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status.ok() ? grpc::Status::OK : ToGrpc(status));
  return reactor;
}

absl::Status NotServed(const char* rpc) {
  return absl::UnimplementedError(absl::StrCat(rpc, " is not served by this build"));
}

// A stream that is refused at once.
class RefusedStream : public grpc::ServerBidiReactor<inference::ModelInferRequest,
                                                     inference::ModelStreamInferResponse> {
 public:
  RefusedStream() { Finish(ToGrpc(NotServed("ModelStreamInfer"))); }
  void OnDone() override { delete this; }
};

class Service final : public Base {
 public:
  Service(const InferBackend& backend, ControlPool& control, const std::atomic<bool>& ready,
          std::string version, std::string device)
      : backend_(backend),
        control_(control),
        ready_(ready),
        version_(std::move(version)),
        device_(std::move(device)) {}

  ServerUnaryReactor* ModelInfer(CallbackServerContext* context, const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override {
    return StartInferCall(backend_, context, request, response);
  }

  ServerUnaryReactor* ServerLive(CallbackServerContext* context,
                                 const inference::ServerLiveRequest*,
                                 inference::ServerLiveResponse* response) override {
    response->set_live(true);
    return mk::Finish(context, absl::OkStatus());
  }

  ServerUnaryReactor* ServerReady(CallbackServerContext* context,
                                  const inference::ServerReadyRequest*,
                                  inference::ServerReadyResponse* response) override {
    response->set_ready(ready_.load());
    return mk::Finish(context, absl::OkStatus());
  }

  ServerUnaryReactor* ServerMetadata(CallbackServerContext* context,
                                     const inference::ServerMetadataRequest*,
                                     inference::ServerMetadataResponse* response) override {
    response->set_name("mergekernel");
    response->set_version(version_);
    context->AddInitialMetadata("mergekernel-device", device_);
    for (const char* extension : {"model_configuration", "model_repository", "statistics"}) {
      response->add_extensions(extension);
    }
    return mk::Finish(context, absl::OkStatus());
  }

  // An unknown name is NOT_FOUND; a known pack that does not serve is an answer: not ready.
  ServerUnaryReactor* ModelReady(CallbackServerContext* context,
                                 const inference::ModelReadyRequest* request,
                                 inference::ModelReadyResponse* response) override {
    const auto version = ParseRequestedVersion(request->name(), request->version());
    if (!version.ok()) return mk::Finish(context, version.status());
    const auto state = backend_.registry.State(request->name(), *version);
    if (state.ok()) response->set_ready(*state == PackState::kReady);
    return mk::Finish(context, state.status());
  }

  ServerUnaryReactor* ModelMetadata(CallbackServerContext* context,
                                    const inference::ModelMetadataRequest* request,
                                    inference::ModelMetadataResponse* response) override {
    const auto generation = Acquire(request->name(), request->version());
    if (generation.ok()) FillMetadata(**generation, response);
    return mk::Finish(context, generation.status());
  }

  ServerUnaryReactor* ModelConfig(CallbackServerContext* context,
                                  const inference::ModelConfigRequest* request,
                                  inference::ModelConfigResponse* response) override {
    const auto generation = Acquire(request->name(), request->version());
    if (generation.ok()) FillConfig(**generation, response->mutable_config());
    return mk::Finish(context, generation.status());
  }

  ServerUnaryReactor* ModelStatistics(CallbackServerContext* context,
                                      const inference::ModelStatisticsRequest* request,
                                      inference::ModelStatisticsResponse* response) override {
    std::vector<GenerationHandle> generations;
    if (request->name().empty()) {
      generations = backend_.registry.Serving();
    } else {
      auto one = Acquire(request->name(), request->version());
      if (!one.ok()) return mk::Finish(context, one.status());
      generations.push_back(*std::move(one));
    }
    for (const GenerationHandle& generation : generations) {
      const auto stats = backend_.stats.Get(generation->name(), generation->version());
      FillStatistics(*generation, stats->Snapshot(), response->add_model_stats());
    }
    return mk::Finish(context, absl::OkStatus());
  }

  // Reads folders, so it runs on the control pool.
  ServerUnaryReactor* RepositoryIndex(CallbackServerContext* context,
                                      const inference::RepositoryIndexRequest* request,
                                      inference::RepositoryIndexResponse* response) override {
    return Control(context, [this, request, response] {
      for (const IndexEntry& entry : backend_.registry.Index()) {
        if (request->ready() && entry.state != PackState::kReady) continue;
        auto* model = response->add_models();
        model->set_name(entry.name);
        if (entry.version != 0) model->set_version(absl::StrCat(entry.version));
        model->set_state(PackStateName(entry.state));
        model->set_reason(entry.reason);
      }
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* RepositoryModelLoad(CallbackServerContext* context,
                                          const inference::RepositoryModelLoadRequest* request,
                                          inference::RepositoryModelLoadResponse*) override {
    const absl::Status allowed = MayControl(*context);
    if (!allowed.ok()) return mk::Finish(context, allowed);
    std::optional<VersionPolicy> policy;
    for (const auto& [key, value] : request->parameters()) {
      if (key != "version_policy") return mk::Finish(context, UnknownParameter(key));
      const auto parsed = ParseVersionPolicy(value.string_param());
      if (!parsed.ok()) return mk::Finish(context, parsed.status());
      policy = *parsed;
    }
    return Control(context, [this, name = request->model_name(), policy] {
      return backend_.registry.Load(name, policy);
    });
  }

  ServerUnaryReactor* RepositoryModelUnload(CallbackServerContext* context,
                                            const inference::RepositoryModelUnloadRequest* request,
                                            inference::RepositoryModelUnloadResponse*) override {
    const absl::Status allowed = MayControl(*context);
    if (!allowed.ok()) return mk::Finish(context, allowed);
    for (const auto& [key, value] : request->parameters()) {
      // Triton's flag for ensembles; there are none here, so it asks for nothing.
      if (key != "unload_dependents") return mk::Finish(context, UnknownParameter(key));
    }
    return Control(context,
                   [this, name = request->model_name()] { return backend_.registry.Unload(name); });
  }

  grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
  ModelStreamInfer(CallbackServerContext*) override {
    return new RefusedStream();
  }

  // Clients unregister everything before they begin, shared memory or not.
  ServerUnaryReactor* CudaSharedMemoryUnregister(
      CallbackServerContext* context, const inference::CudaSharedMemoryUnregisterRequest*,
      inference::CudaSharedMemoryUnregisterResponse*) override {
    return mk::Finish(context, absl::OkStatus());
  }

#define MK_NOT_SERVED(rpc)                                                                \
  ServerUnaryReactor* rpc(CallbackServerContext* context, const inference::rpc##Request*, \
                          inference::rpc##Response*) override {                           \
    return mk::Finish(context, NotServed(#rpc));                                          \
  }
  MK_NOT_SERVED(SystemSharedMemoryStatus)
  MK_NOT_SERVED(SystemSharedMemoryRegister)
  MK_NOT_SERVED(SystemSharedMemoryUnregister)
  MK_NOT_SERVED(CudaSharedMemoryStatus)
  MK_NOT_SERVED(CudaSharedMemoryRegister)
  MK_NOT_SERVED(TraceSetting)
  MK_NOT_SERVED(LogSettings)
#undef MK_NOT_SERVED

 private:
  absl::StatusOr<GenerationHandle> Acquire(const std::string& name,
                                           const std::string& version) const {
    MK_ASSIGN_OR_RETURN(const int64_t number, ParseRequestedVersion(name, version));
    return backend_.registry.Acquire(name, number);
  }

  static absl::Status UnknownParameter(const std::string& key) {
    return absl::InvalidArgumentError(absl::StrCat("unknown parameter '", Printable(key, 80), "'"));
  }

  static absl::Status MayControl(const CallbackServerContext& context) {
    if (IsLocalPeer(context.peer())) return absl::OkStatus();
    return absl::PermissionDeniedError("load and unload are allowed from this machine alone");
  }

  // Finishes the call with what `task` returns, on the control pool. gRPC keeps request and
  // response until then.
  template <typename Task>
  ServerUnaryReactor* Control(CallbackServerContext* context, Task task) {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    const bool taken = control_.Run([reactor, task = std::move(task)] {
      const absl::Status status = task();
      reactor->Finish(status.ok() ? grpc::Status::OK : ToGrpc(status));
    });
    if (!taken) reactor->Finish(ToGrpc(absl::UnavailableError("too many control calls wait")));
    return reactor;
  }

  const InferBackend backend_;
  ControlPool& control_;
  const std::atomic<bool>& ready_;
  const std::string version_;
  const std::string device_;  // fit for a header
};

class GrpcServerImpl : public GrpcServer {
 public:
  GrpcServerImpl(const InferBackend& backend, ControlPool& control, const std::atomic<bool>& ready,
                 const GrpcOptions& options)
      : service_(backend, control, ready, options.version, Printable(options.device)) {}

  absl::Status Start(const GrpcOptions& options) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
    builder.SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
    grpc::ResourceQuota quota("mergekernel");
    quota.Resize(static_cast<size_t>(options.memory_quota_bytes));
    builder.SetResourceQuota(quota);
    // A port somebody else listens on must be an error, not a share of his connections.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               static_cast<int>(options.keepalive_min_interval_ms));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("gRPC cannot listen on ", options.address, " (in use, or no such address)"));
    }
    address_ = options.address;
    const size_t colon = address_.rfind(':');
    if (address_.rfind("unix:", 0) != 0 && colon != address_.npos) {
      address_ = absl::StrCat(address_.substr(0, colon), ":", port);
    }
    SetServing(false);
    return absl::OkStatus();
  }

  ~GrpcServerImpl() override { Stop(0); }

  const std::string& address() const override { return address_; }

  void SetServing(bool serving) override {
    auto* health = server_->GetHealthCheckService();
    health->SetServingStatus("", serving);
    health->SetServingStatus(GRPCInferenceService::service_full_name(), serving);
  }

  void SetPackState(const std::string& name, int64_t version, PackState state) override {
    MutexLock lock(mutex_);
    auto& versions = ready_[name];
    versions[version] = state == PackState::kReady;
    bool any = false;
    for (const auto& [number, ready] : versions) any = any || ready;
    auto* health = server_->GetHealthCheckService();
    health->SetServingStatus(absl::StrCat(name, "/", version), state == PackState::kReady);
    health->SetServingStatus(name, any);
  }

  void Stop(double grace_seconds) override {
    if (server_ == nullptr || stopped_) return;
    stopped_ = true;
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::milliseconds(static_cast<int64_t>(grace_seconds * 1000)));
    server_->Wait();
    // The server itself stays until the destructor: packs that unload still tell their state to its
    // health service.
  }

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  bool stopped_ = false;
  std::string address_;
  Mutex mutex_;
  std::map<std::string, std::map<int64_t, bool>> ready_ MK_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Create(const GrpcOptions& options,
                                                               const InferBackend& backend,
                                                               ControlPool& control,
                                                               const std::atomic<bool>& ready) {
  auto server = std::make_unique<GrpcServerImpl>(backend, control, ready, options);
  MK_RETURN_IF_ERROR(server->Start(options));
  return std::unique_ptr<GrpcServer>(std::move(server));
}

}  // namespace mk
