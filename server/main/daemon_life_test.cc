// The real daemon over time: bad packs, health, deadlines, a clean stop, bytes that are no message.
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/weights/testing/write_safetensors.h"
#include "proto/health/health.grpc.pb.h"
#include "server/main/testing/running_daemon.h"

namespace mk {
namespace {

using grpc::StatusCode;
using inference::ModelInferRequest;
using inference::ModelInferResponse;

TEST_F(DaemonTest, BadPacksAreRefusedAndTheOldOneServesOn) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  Start();
  const auto version = [&] {
    ModelInferResponse response;
    if (!Infer(Tensor("p", "UINT8", {1}, "x"), &response).ok()) return int64_t{-1};
    int64_t value = 0;
    std::memcpy(&value, response.raw_output_contents(0).data(), 8);
    return value;
  };
  ASSERT_EQ(version(), 1);
  const std::vector<std::pair<const char*, const char*>> bad = {
      {"create_fails", "no such luck"}, {"create_throws", "thrown in create"},
      {"create_aborts", "crashed"},     {"undefined", "mk_not_there"},
      {"needed", "libz.so.1"},          {"thread_local", "thread_local"}};
  for (const auto& [fixture, says] : bad) {
    repository_.Install("p", 2, FixtureSpec(fixture));
    const grpc::Status first = Load("p"), second = Load("p");
    EXPECT_FALSE(first.ok()) << fixture;
    EXPECT_NE(first.error_message().find(says), std::string::npos)
        << fixture << ": " << first.error_message();
    EXPECT_EQ(first.error_message(), second.error_message());
    EXPECT_EQ(first.error_message().find("/proc"), std::string::npos);
    EXPECT_EQ(version(), 1) << fixture;
  }
  repository_.Install("p", 2, FixtureSpec("version2", 2));
  ASSERT_TRUE(Load("p").ok());
  EXPECT_EQ(version(), 2);
  ASSERT_TRUE(Unload("p").ok());
  EXPECT_EQ(Infer(Tensor("p", "UINT8", {1}, "x")).error_code(), grpc::UNAVAILABLE);
}

TEST_F(DaemonTest, HealthCheckAndWatchFollowPacksAndTheServer) {
  repository_.Install("p", 1, FixtureSpec("version1"));
  Start();
  auto health = grpc::health::v1::Health::NewStub(channel_);
  const auto check = [&](const std::string& service) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    grpc::health::v1::HealthCheckResponse response;
    const grpc::Status status = health->Check(&context, request, &response);
    return status.ok() ? static_cast<int>(response.status())
                       : -static_cast<int>(status.error_code());
  };
  for (const char* service : {"", "inference.GRPCInferenceService", "p", "p/1"}) {
    EXPECT_EQ(check(service), grpc::health::v1::HealthCheckResponse::SERVING) << service;
  }
  EXPECT_EQ(check("nope"), -grpc::NOT_FOUND);
  grpc::ClientContext watch_context;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service("p");
  auto watch = health->Watch(&watch_context, request);
  grpc::health::v1::HealthCheckResponse seen;
  ASSERT_TRUE(watch->Read(&seen));
  EXPECT_EQ(seen.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  ASSERT_TRUE(Unload("p").ok());
  ASSERT_TRUE(watch->Read(&seen));
  EXPECT_EQ(seen.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(check("p/1"), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  watch_context.TryCancel();
}

// Field case A10: deadlines that fire at any moment, from many threads; only the three codes come
// back, and the daemon answers as before.
TEST_F(DaemonTest, A10DeadlinesFireWhileAnswersAreWritten) {
  repository_.Install("echo", 1, EchoSpec());
  Start();
  std::vector<std::thread> clients;
  std::atomic<int> strange{0};
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      auto request = Tensor("echo", "UINT8", {1000}, std::string(1000, 'x'));
      (*request.mutable_parameters())["delay_ms"].set_int64_param(1);
      for (int i = 0; i < 100; ++i) {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() +
                             std::chrono::microseconds(200 + (i * 37 + c * 11) % 1800));
        ModelInferResponse response;
        const StatusCode code = stub_->ModelInfer(&context, request, &response).error_code();
        if (code != grpc::OK && code != grpc::DEADLINE_EXCEEDED && code != grpc::CANCELLED)
          ++strange;
      }
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_EQ(strange.load(), 0);
  EXPECT_TRUE(Infer(Tensor("echo", "UINT8", {1}, "x")).ok());
}

TEST_F(DaemonTest, SigtermUnderTrafficDrainsAndExitsWithZero) {
  repository_.Install("echo", 1, EchoSpec());
  Start();
  std::atomic<int> lost{0}, served{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      auto request = Tensor("echo", "UINT8", {100}, std::string(100, 'x'));
      (*request.mutable_parameters())["delay_ms"].set_int64_param(20);
      for (;;) {
        const grpc::Status status = Infer(request);
        if (!status.ok()) {
          if (status.error_code() != grpc::UNAVAILABLE && status.error_code() != grpc::CANCELLED)
            ++lost;
          return;
        }
        ++served;
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
  daemon_.reset();
  for (auto& client : clients) client.join();
  EXPECT_EQ(lost.load(), 0);
  EXPECT_GT(served.load(), 0);
}

TEST_F(DaemonTest, GarbageInsteadOfAMessageIsInvalidArgument) {
  repository_.Install("echo", 1, EchoSpec());
  Start();
  grpc::GenericStub generic(channel_);
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11), std::string("\x0a\x7f", 2),
        std::string("\x0b", 1), std::string("\x00\x01", 2)}) {
    grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1), response;
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    auto call = generic.PrepareUnaryCall(&context, "/inference.GRPCInferenceService/ModelInfer",
                                         request, &queue);
    grpc::Status status;
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag;
    bool ok;
    queue.Next(&tag, &ok);
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT) << status.error_message();
  }
}

}  // namespace
}  // namespace mk
