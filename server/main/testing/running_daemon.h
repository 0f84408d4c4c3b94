// The real daemon as a process, and a fixture with a repository and a stub for it.
#ifndef MERGEKERNEL_SERVER_MAIN_TESTING_RUNNING_DAEMON_H_
#define MERGEKERNEL_SERVER_MAIN_TESTING_RUNNING_DAEMON_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/inference/grpc_service.grpc.pb.h"
#include "tests/packs/pack_builder.h"

namespace mk {

// One daemon process over a repository of its own.
class RunningDaemon {
 public:
  RunningDaemon(const TestRepository& repository, std::vector<std::string> flags)
      : ready_file_(repository.root() + "-ready.json") {
    std::vector<std::string> arguments = {"server/main/mergekerneld",
                                          "--repository",
                                          repository.root(),
                                          "--grpc-address",
                                          "127.0.0.1:0",
                                          "--metrics-address",
                                          "127.0.0.1:0",
                                          "--probe-path",
                                          "core/loader/mergekernel-probe",
                                          "--ready-file",
                                          ready_file_};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, argv[0], nullptr, nullptr, argv.data(), environ), 0);
    for (int i = 0; i < 600 && ReadFileOrEmpty(ready_file_).empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    const auto ready = nlohmann::json::parse(ReadFileOrEmpty(ready_file_), nullptr, false);
    EXPECT_TRUE(ready.is_object()) << "the daemon was not ready within 30 s";
    if (ready.is_object()) address_ = ready["grpc"];
  }
  ~RunningDaemon() {
    if (pid_ != 0) kill(pid_, SIGKILL), Wait();
  }

  const std::string& address() const { return address_; }
  int pid() const { return pid_; }
  void Signal(int signal) { kill(pid_, signal); }
  // The exit code; 128 + signal where one ended it.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  bool Alive() { return kill(pid_, 0) == 0; }

 private:
  const std::string ready_file_;
  pid_t pid_ = 0;
  std::string address_;
};

using Stub = inference::GRPCInferenceService::Stub;

class DaemonTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> flags = {"--load", "*"}) {
    daemon_ = std::make_unique<RunningDaemon>(repository_, std::move(flags));
    channel_ = grpc::CreateChannel(daemon_->address(), grpc::InsecureChannelCredentials());
    stub_ = inference::GRPCInferenceService::NewStub(channel_);
  }
  void TearDown() override {
    if (daemon_ == nullptr) return;
    daemon_->Signal(SIGTERM);
    EXPECT_EQ(daemon_->Wait(), 0);
  }

  // Every call gets a deadline, so that a hang is a failure.
  template <typename Method, typename Request, typename Response>
  grpc::Status Call(Method method, const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return (stub_.get()->*method)(&context, request, response);
  }
  grpc::Status Infer(const inference::ModelInferRequest& request,
                     inference::ModelInferResponse* response = nullptr) {
    inference::ModelInferResponse unused;
    return Call(&Stub::ModelInfer, request, response ? response : &unused);
  }
  grpc::Status Load(const std::string& name) {
    inference::RepositoryModelLoadRequest request;
    request.set_model_name(name);
    inference::RepositoryModelLoadResponse response;
    return Call(&Stub::RepositoryModelLoad, request, &response);
  }
  grpc::Status Unload(const std::string& name) {
    inference::RepositoryModelUnloadRequest request;
    request.set_model_name(name);
    inference::RepositoryModelUnloadResponse response;
    return Call(&Stub::RepositoryModelUnload, request, &response);
  }

  static inference::ModelInferRequest Tensor(const std::string& model, const std::string& dtype,
                                             const std::vector<int64_t>& shape,
                                             const std::string& raw) {
    inference::ModelInferRequest request;
    request.set_model_name(model);
    auto* input = request.add_inputs();
    input->set_name("INPUT0");
    input->set_datatype(dtype);
    for (const int64_t dim : shape) input->add_shape(dim);
    request.add_raw_input_contents(raw);
    return request;
  }
  void ExpectRefused(const inference::ModelInferRequest& request, grpc::StatusCode code,
                     const std::string& says) {
    const grpc::Status status = Infer(request);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_NE(status.error_message().find(says), std::string::npos)
        << "'" << status.error_message() << "' should say '" << says << "'";
  }

  TestRepository repository_;
  std::unique_ptr<RunningDaemon> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_MAIN_TESTING_RUNNING_DAEMON_H_
