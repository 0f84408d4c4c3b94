// A stand-in for the daemon behind mk's end-to-end test: answers by table and remembers what it was
// sent.
#ifndef MERGEKERNEL_SERVER_CLI_TESTING_FAKE_DAEMON_H_
#define MERGEKERNEL_SERVER_CLI_TESTING_FAKE_DAEMON_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "proto/inference/grpc_service.grpc.pb.h"

namespace mk::cli {

// Two packs that serve, `vmamba-pico` (image or encoded_image to logits) and `echo`, and one that
// was refused. An encoded image reads "photo:K" and is of class K. gRPC calls it from several
// threads.
class FakeDaemon : public inference::GRPCInferenceService::Service {
 public:
  using Status = grpc::Status;
  using StatusCode = grpc::StatusCode;
  using ServerContext = grpc::ServerContext;

  // What the next calls answer; set while no call is under way.
  bool ready = true;
  bool labels = true;
  Status load_answer = Status::OK;
  Status statistics_answer = Status::OK;
  Status infer_answer = Status::OK;

  inference::RepositoryModelLoadRequest last_load() {
    MutexLock lock(mutex_);
    return last_load_;
  }
  std::string last_unload() {
    MutexLock lock(mutex_);
    return last_unload_;
  }
  inference::ModelInferRequest last_infer() {
    MutexLock lock(mutex_);
    return last_infer_;
  }
  int infers() {
    MutexLock lock(mutex_);
    return infers_;
  }

  Status ServerReady(ServerContext*, const inference::ServerReadyRequest*,
                     inference::ServerReadyResponse* out) override {
    out->set_ready(ready);
    return Status::OK;
  }

  Status ServerMetadata(ServerContext* context, const inference::ServerMetadataRequest*,
                        inference::ServerMetadataResponse* out) override {
    context->AddInitialMetadata("mergekernel-device", "cpu: pretended");
    out->set_name("stand-in");
    out->set_version("7.8.9");
    return Status::OK;
  }

  Status RepositoryIndex(ServerContext*, const inference::RepositoryIndexRequest*,
                         inference::RepositoryIndexResponse* out) override {
    AddIndex("echo", "3", "READY", "", out);
    AddIndex("torn", "2", "UNAVAILABLE", "manifest: line 4: unknown field", out);
    AddIndex("vmamba-pico", "1", "READY", "", out);
    return Status::OK;
  }

  Status ModelStatistics(ServerContext*, const inference::ModelStatisticsRequest*,
                         inference::ModelStatisticsResponse* out) override {
    if (!statistics_answer.ok()) return statistics_answer;
    auto* echo = out->add_model_stats();
    echo->set_name("echo");
    echo->set_version("3");
    echo->mutable_inference_stats()->mutable_success()->set_count(4);
    echo->mutable_inference_stats()->mutable_success()->set_ns(8'000'000);
    echo->mutable_inference_stats()->mutable_fail()->set_count(1);
    for (const int region : {0, 1, 2}) {
      auto* usage = echo->add_memory_usage();
      usage->set_type("CPU");
      usage->set_id(region);
      usage->set_byte_size(1024u << region);
    }
    return Status::OK;
  }

  Status RepositoryModelLoad(ServerContext*, const inference::RepositoryModelLoadRequest* request,
                             inference::RepositoryModelLoadResponse*) override {
    MutexLock lock(mutex_);
    last_load_ = *request;
    return Known(request->model_name()) ? load_answer : Unknown(request->model_name());
  }

  Status RepositoryModelUnload(ServerContext*,
                               const inference::RepositoryModelUnloadRequest* request,
                               inference::RepositoryModelUnloadResponse*) override {
    MutexLock lock(mutex_);
    last_unload_ = request->model_name();
    return Known(request->model_name()) ? Status::OK : Unknown(request->model_name());
  }

  Status ModelMetadata(ServerContext*, const inference::ModelMetadataRequest* request,
                       inference::ModelMetadataResponse* out) override {
    out->set_name(request->name());
    if (request->name() == "echo") {
      AddTensor("INPUT0", "UINT8", {-1}, out->add_inputs());
      AddTensor("OUTPUT0", "UINT8", {-1}, out->add_outputs());
    } else if (request->name() == "vmamba-pico") {
      AddTensor("image", "UINT8", {-1, -1, -1}, out->add_inputs());
      AddTensor("encoded_image", "BYTES", {1}, out->add_inputs());
      AddTensor("logits", "FP32", {3}, out->add_outputs());
    } else {
      return Unknown(request->name());
    }
    return Status::OK;
  }

  Status ModelConfig(ServerContext*, const inference::ModelConfigRequest* request,
                     inference::ModelConfigResponse* out) override {
    const bool images = request->name() == "vmamba-pico";
    for (const char* name : {"image", "encoded_image"}) {
      if (!images) break;
      auto* input = out->mutable_config()->add_input();
      input->set_name(name);
      input->set_optional(true);
    }
    if (!images) out->mutable_config()->add_input()->set_name("INPUT0");
    if (images && labels) {
      (*out->mutable_config()->mutable_parameters())["labels"].set_string_value(
          "Shirt\nTrouser\nAnkle boot\n");
    }
    return Status::OK;
  }

  Status ModelInfer(ServerContext*, const inference::ModelInferRequest* request,
                    inference::ModelInferResponse* out) override {
    {
      MutexLock lock(mutex_);
      last_infer_ = *request;
      ++infers_;
    }
    if (!infer_answer.ok()) return infer_answer;
    out->set_model_name(request->model_name());
    out->set_model_version("1");
    auto* output = out->add_outputs();
    if (request->model_name() == "echo") {
      output->set_name("OUTPUT0");
      output->set_datatype("UINT8");
      output->add_shape(static_cast<int64_t>(request->raw_input_contents(0).size()));
      out->add_raw_output_contents(request->raw_input_contents(0));
      return Status::OK;
    }
    const std::string& raw = request->raw_input_contents(0);
    std::vector<float> logits = {0, 1, 0};
    if (request->inputs(0).name() == "encoded_image") {
      if (raw.substr(4, 6) != "photo:") {
        return {StatusCode::INVALID_ARGUMENT, "encoded_image is neither JPEG nor PNG"};
      }
      logits.at(static_cast<size_t>(raw.at(10) - '0')) = 3;
    }
    output->set_name("logits");
    output->set_datatype("FP32");
    output->add_shape(3);
    out->add_raw_output_contents(logits.data(), logits.size() * sizeof(float));
    return Status::OK;
  }

 private:
  static bool Known(const std::string& name) { return name == "echo" || name == "vmamba-pico"; }
  static Status Unknown(const std::string& name) {
    return {StatusCode::NOT_FOUND, "Request for unknown model: '" + name + "' is not found"};
  }
  static void AddIndex(const char* name, const char* version, const char* state, const char* reason,
                       inference::RepositoryIndexResponse* out) {
    auto* model = out->add_models();
    model->set_name(name);
    model->set_version(version);
    model->set_state(state);
    model->set_reason(reason);
  }
  static void AddTensor(const char* name, const char* datatype, const std::vector<int64_t>& shape,
                        inference::ModelMetadataResponse::TensorMetadata* out) {
    out->set_name(name);
    out->set_datatype(datatype);
    for (const int64_t dim : shape) out->add_shape(dim);
  }

  Mutex mutex_;
  inference::RepositoryModelLoadRequest last_load_ MK_GUARDED_BY(mutex_);
  std::string last_unload_ MK_GUARDED_BY(mutex_);
  inference::ModelInferRequest last_infer_ MK_GUARDED_BY(mutex_);
  int infers_ MK_GUARDED_BY(mutex_) = 0;
};

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_TESTING_FAKE_DAEMON_H_
