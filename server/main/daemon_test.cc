// The real daemon, started as a process, over gRPC: every call, and the bad requests of the field
// cases.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/weights/testing/write_safetensors.h"
#include "server/main/testing/running_daemon.h"

namespace mk {
namespace {

using grpc::StatusCode;
using inference::ModelInferRequest;
using inference::ModelInferResponse;

TEST_F(DaemonTest, TheProtocolsCallsTellOfTheServerAndItsModels) {
  repository_.Install("echo", 1, EchoSpec());
  repository_.Install("other", 2, FixtureSpec("version1"));
  Start({"--load", "echo"});
  inference::ServerLiveResponse live;
  EXPECT_TRUE(Call(&Stub::ServerLive, inference::ServerLiveRequest(), &live).ok() && live.live());
  inference::ServerReadyResponse ready;
  EXPECT_TRUE(Call(&Stub::ServerReady, inference::ServerReadyRequest(), &ready).ok() &&
              ready.ready());
  inference::ServerMetadataResponse server;
  EXPECT_TRUE(Call(&Stub::ServerMetadata, inference::ServerMetadataRequest(), &server).ok());
  EXPECT_EQ(server.name(), "mergekernel");

  const auto model_ready = [&](const std::string& name, const std::string& version, bool* out) {
    inference::ModelReadyRequest request;
    request.set_name(name);
    request.set_version(version);
    inference::ModelReadyResponse response;
    const grpc::Status status = Call(&Stub::ModelReady, request, &response);
    *out = response.ready();
    return status.error_code();
  };
  bool is_ready = false;
  EXPECT_TRUE(model_ready("echo", "", &is_ready) == grpc::OK && is_ready);
  EXPECT_TRUE(model_ready("other", "2", &is_ready) == grpc::OK && !is_ready);
  EXPECT_EQ(model_ready("nope", "", &is_ready), grpc::NOT_FOUND);
  EXPECT_EQ(model_ready("echo", "3", &is_ready), grpc::NOT_FOUND);
  EXPECT_EQ(model_ready("echo", "010", &is_ready), grpc::NOT_FOUND);
  EXPECT_EQ(model_ready("echo", "1/../2", &is_ready), grpc::INVALID_ARGUMENT);

  inference::ModelMetadataRequest metadata_request;
  metadata_request.set_name("echo");
  inference::ModelMetadataResponse metadata;
  ASSERT_TRUE(Call(&Stub::ModelMetadata, metadata_request, &metadata).ok());
  EXPECT_EQ(metadata.inputs(0).datatype(), "UINT8");
  EXPECT_EQ(metadata.versions(0), "1");
  inference::ModelConfigRequest config_request;
  config_request.set_name("echo");
  inference::ModelConfigResponse config;
  ASSERT_TRUE(Call(&Stub::ModelConfig, config_request, &config).ok());
  EXPECT_EQ(config.config().input(0).data_type(), inference::TYPE_UINT8);
  EXPECT_EQ(config.config().max_batch_size(), 0);

  inference::RepositoryIndexResponse index;
  ASSERT_TRUE(Call(&Stub::RepositoryIndex, inference::RepositoryIndexRequest(), &index).ok());
  ASSERT_EQ(index.models_size(), 2);
  EXPECT_EQ(index.models(0).state(), "READY");
  EXPECT_EQ(index.models(1).state(), "UNAVAILABLE");

  ASSERT_TRUE(Infer(Tensor("echo", "UINT8", {3}, "abc")).ok());
  inference::ModelStatisticsResponse statistics;
  ASSERT_TRUE(Call(&Stub::ModelStatistics, inference::ModelStatisticsRequest(), &statistics).ok());
  ASSERT_EQ(statistics.model_stats_size(), 1);
  EXPECT_EQ(statistics.model_stats(0).version(), "1");
  EXPECT_EQ(statistics.model_stats(0).inference_stats().success().count(), 1u);
  EXPECT_EQ(statistics.model_stats(0).inference_stats().queue().count(), 1u);
}

TEST_F(DaemonTest, WhatIsNotServedSaysSoByName) {
  repository_.Install("echo", 1, EchoSpec());
  Start();
  inference::SystemSharedMemoryStatusResponse shared;
  const grpc::Status status =
      Call(&Stub::SystemSharedMemoryStatus, inference::SystemSharedMemoryStatusRequest(), &shared);
  EXPECT_EQ(status.error_code(), grpc::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(), "SystemSharedMemoryStatus is not served by this build");
  inference::CudaSharedMemoryUnregisterResponse unregister;
  EXPECT_TRUE(Call(&Stub::CudaSharedMemoryUnregister,
                   inference::CudaSharedMemoryUnregisterRequest(), &unregister)
                  .ok());
  inference::TraceSettingResponse trace;
  EXPECT_EQ(Call(&Stub::TraceSetting, inference::TraceSettingRequest(), &trace).error_code(),
            grpc::UNIMPLEMENTED);
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_code(), grpc::UNIMPLEMENTED);
}

TEST_F(DaemonTest, EchoesEveryDatatypeAndLargeTensors) {
  for (const char* dtype :
       {"BOOL", "UINT8", "UINT16", "INT64", "FP16", "FP32", "FP64", "BF16", "BYTES"}) {
    repository_.Install(std::string("echo-") + dtype, 1,
                        EchoSpec(std::string("INPUT0:") + dtype + ":-1"));
  }
  Start();
  ModelInferResponse response;
  for (const auto& [dtype, size] : std::vector<std::pair<std::string, size_t>>{{"BOOL", 1},
                                                                               {"UINT8", 1},
                                                                               {"UINT16", 2},
                                                                               {"INT64", 8},
                                                                               {"FP16", 2},
                                                                               {"FP32", 4},
                                                                               {"FP64", 8},
                                                                               {"BF16", 2}}) {
    const std::string data(size * 3, '\x01');
    auto request = Tensor("echo-" + dtype, dtype, {3}, data);
    request.set_id("id-7");
    ASSERT_TRUE(Infer(request, &response).ok()) << dtype;
    EXPECT_EQ(response.raw_output_contents(0), data);
    EXPECT_EQ(response.id(), "id-7");
    EXPECT_EQ(response.model_version(), "1");
  }
  const std::string packed("\x01\0\0\0a\0\0\0\0", 9);
  ASSERT_TRUE(Infer(Tensor("echo-BYTES", "BYTES", {2}, packed), &response).ok());
  EXPECT_EQ(response.raw_output_contents(0), packed);
  // Field case A08: 5 MB pass by default.
  std::string large(5 << 20, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 >> 3);
  ModelInferResponse large_response;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  stub_ = inference::GRPCInferenceService::NewStub(
      grpc::CreateCustomChannel(daemon_->address(), grpc::InsecureChannelCredentials(), arguments));
  ASSERT_TRUE(Infer(Tensor("echo-UINT8", "UINT8", {5 << 20}, large), &large_response).ok());
  EXPECT_EQ(large_response.raw_output_contents(0), large);
  const int64_t limit = 64 << 20;
  const grpc::Status over = Infer(Tensor("echo-UINT8", "UINT8", {limit}, std::string(limit, 'x')));
  EXPECT_EQ(over.error_code(), grpc::RESOURCE_EXHAUSTED);
}

// Field cases A01, A03, A04, A18, A19 and the neighbours of each: refused with the field, or
// answered.
TEST_F(DaemonTest, BadRequestsAreRefusedByNameAndTheDaemonServesOn) {
  repository_.Install("ident", 1, EchoSpec("INPUT0:UINT8:-1,16"));
  repository_.Install("floats", 1, EchoSpec("INPUT0:FP32:-1,-1"));
  repository_.Install("bf16", 1, EchoSpec("INPUT0:BF16:-1"));
  repository_.Install("hits", 1, HitsSpec());
  Start();
  const std::string sixteen(16, 'x');
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{-1, 16}, {16, -1}, {-1}, {INT64_MIN}}) {
    ExpectRefused(Tensor("ident", "UINT8", shape, sixteen), grpc::INVALID_ARGUMENT,
                  "input 'INPUT0'");
  }
  ExpectRefused(Tensor("floats", "FP32", {1, 5}, std::string(28, 'x')), grpc::INVALID_ARGUMENT,
                "expected 20 bytes, got 28");
  ExpectRefused(Tensor("floats", "FP32", {1, 5}, std::string(12, 'x')), grpc::INVALID_ARGUMENT,
                "expected 20 bytes, got 12");
  ExpectRefused(Tensor("floats", "FP32", {INT64_MAX, INT64_MAX}, ""), grpc::INVALID_ARGUMENT,
                "too many elements");
  for (const char* name :
       {"../etc", "a/../b", "..", "/etc/passwd", "model/", " ..", "", " ", "\t"}) {
    ExpectRefused(Tensor(name, "UINT8", {1}, "x"), grpc::INVALID_ARGUMENT, "model name");
    EXPECT_EQ(Load(name).error_code(), grpc::INVALID_ARGUMENT) << name;
  }
  for (const char* name : {"model.version1", "...", "..my_model", "model..1"}) {
    ExpectRefused(Tensor(name, "UINT8", {1}, "x"), grpc::NOT_FOUND, "unknown model");
    EXPECT_EQ(Load(name).error_code(), grpc::NOT_FOUND) << name;
  }
  auto version = Tensor("ident", "UINT8", {1, 16}, sixteen);
  version.set_model_version("1/../2");
  ExpectRefused(version, grpc::INVALID_ARGUMENT, "version");
  version.set_model_version("9");
  ExpectRefused(version, grpc::NOT_FOUND, "version 9");

  ModelInferResponse response;
  ASSERT_TRUE(Infer(Tensor("floats", "FP32", {2, 0}, ""), &response).ok());
  EXPECT_EQ(response.raw_output_contents_size(), 1);
  EXPECT_EQ(response.outputs(0).shape(1), 0);
  ASSERT_TRUE(Infer(Tensor("hits", "FP32", {1}, std::string(4, '\0')), &response).ok());
  EXPECT_EQ(response.raw_output_contents(0), "");
  EXPECT_EQ(response.outputs(0).shape(0), 0);

  const std::string bf16("\x80\x3f\x24\x3c", 4);
  ASSERT_TRUE(Infer(Tensor("bf16", "BF16", {2}, bf16), &response).ok());
  EXPECT_EQ(response.raw_output_contents(0), bf16);
  ExpectRefused(Tensor("bf16", "BF16", {1}, "abc"), grpc::INVALID_ARGUMENT, "got 3");
  auto typed = Tensor("bf16", "BF16", {1}, "");
  typed.clear_raw_input_contents();
  typed.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  ExpectRefused(typed, grpc::INVALID_ARGUMENT, "no typed contents");
  EXPECT_TRUE(daemon_->Alive());
}

// Field case A05: raw and typed contents in every wrong combination.
TEST_F(DaemonTest, A05ContentsInEveryWrongCombination) {
  repository_.Install("sum2", 1, Sum2Spec());
  Start();
  const std::string ones("\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0", 16),
      twos("\2\0\0\0\2\0\0\0\2\0\0\0\2\0\0\0", 16);
  ModelInferRequest good;
  good.set_model_name("sum2");
  for (const char* name : {"INPUT0", "INPUT1"}) {
    auto* input = good.add_inputs();
    input->set_name(name);
    input->set_datatype("INT32");
    input->add_shape(4);
  }
  auto request = good;
  request.add_raw_input_contents(ones);
  ExpectRefused(request, grpc::INVALID_ARGUMENT, "'INPUT1' has none");
  request.add_raw_input_contents(twos);
  ModelInferResponse response;
  ASSERT_TRUE(Infer(request, &response).ok());
  EXPECT_EQ(response.raw_output_contents(0)[0], 3);
  auto both = request;
  for (int i = 0; i < 4; ++i) both.mutable_inputs(0)->mutable_contents()->add_int_contents(1);
  ExpectRefused(both, grpc::INVALID_ARGUMENT, "'INPUT0'");
  request.add_raw_input_contents(ones);
  ExpectRefused(request, grpc::INVALID_ARGUMENT, "3 for 2 inputs");
  auto typed = good;
  for (int i = 0; i < 4; ++i) {
    typed.mutable_inputs(0)->mutable_contents()->add_int_contents(10);
    typed.mutable_inputs(1)->mutable_contents()->add_int_contents(-3);
  }
  ASSERT_TRUE(Infer(typed, &response).ok());
  EXPECT_EQ(response.raw_output_contents(0)[0], 7);
  auto wrong_type = typed;
  wrong_type.mutable_inputs(0)->set_datatype("FP32");
  ExpectRefused(wrong_type, grpc::INVALID_ARGUMENT, "'INPUT0'");
  auto no_type = typed;
  no_type.mutable_inputs(0)->set_datatype("");
  ExpectRefused(no_type, grpc::INVALID_ARGUMENT, "unknown datatype ''");
  auto three = typed;
  three.mutable_inputs(0)->mutable_contents()->mutable_int_contents()->RemoveLast();
  ExpectRefused(three, grpc::INVALID_ARGUMENT, "expected 16 bytes, got 12");
  auto reversed = good;
  reversed.mutable_inputs()->SwapElements(0, 1);
  reversed.add_raw_input_contents(twos);
  reversed.add_raw_input_contents(ones);
  ASSERT_TRUE(Infer(reversed, &response).ok());
  EXPECT_EQ(response.raw_output_contents(0)[0], 3);
  auto none = good;
  none.clear_inputs();
  ExpectRefused(none, grpc::INVALID_ARGUMENT, "'INPUT0' is missing");
}

TEST_F(DaemonTest, ReservedParametersAreJudged) {
  repository_.Install("echo", 1, EchoSpec());
  Start();
  auto request = Tensor("echo", "UINT8", {1}, "x");
  auto& parameters = *request.mutable_parameters();
  parameters["sequence_id"].set_int64_param(0);
  parameters["priority"].set_uint64_param(1);
  EXPECT_TRUE(Infer(request).ok());
  parameters["sequence_id"].set_int64_param(5);
  ExpectRefused(request, grpc::UNIMPLEMENTED, "sequence_id");
  parameters.erase("sequence_id");
  parameters["triton_wish"].set_bool_param(true);
  ExpectRefused(request, grpc::INVALID_ARGUMENT, "triton_wish");
  parameters.clear();
  parameters["timeout"].set_int64_param(-1);
  ExpectRefused(request, grpc::INVALID_ARGUMENT, "timeout");
  parameters["timeout"].set_int64_param(20'000);
  parameters["delay_ms"].set_int64_param(5'000);
  ExpectRefused(request, grpc::DEADLINE_EXCEEDED, "deadline");
  parameters.clear();
  (*request.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r");
  ExpectRefused(request, grpc::UNIMPLEMENTED, "shared memory");
}

// Field case B01, B02, B07, B08 over the wire: the old generation serves whatever the new one is.

}  // namespace
}  // namespace mk
