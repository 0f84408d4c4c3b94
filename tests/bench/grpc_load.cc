#include "tests/bench/grpc_load.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "proto/inference/grpc_service.grpc.pb.h"  // with how gRPC serialises its messages

namespace mk {
namespace {

constexpr char kMethod[] = "/inference.GRPCInferenceService/ModelInfer";

inference::ModelInferRequest MessageOf(const BenchCase& bench_case) {
  inference::ModelInferRequest request;
  request.set_model_name(bench_case.model);
  auto* input = request.add_inputs();
  input->set_name(bench_case.input);
  input->set_datatype(std::string(DtypeName(bench_case.dtype)));
  for (const int64_t dim : bench_case.shape) input->add_shape(dim);
  request.add_raw_input_contents(bench_case.content.data(), bench_case.content.size());
  return request;
}

// What differs between the two kinds of client.
void Prepare(const BenchCase& bench_case, inference::ModelInferRequest* request) {
  *request = MessageOf(bench_case);
}
void Prepare(const BenchCase& bench_case, grpc::ByteBuffer* request) {
  const grpc::Slice slice(MessageOf(bench_case).SerializeAsString());
  *request = grpc::ByteBuffer(&slice, 1);
}
bool ToMessage(const inference::ModelInferResponse& response,
               inference::ModelInferResponse* message) {
  *message = response;
  return true;
}
bool ToMessage(const grpc::ByteBuffer& response, inference::ModelInferResponse* message) {
  std::vector<grpc::Slice> slices;
  if (!response.Dump(&slices).ok()) return false;
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return message->ParseFromString(bytes);
}
uint64_t SizeOf(const inference::ModelInferResponse& response) {
  return response.raw_output_contents_size() == 1 ? response.raw_output_contents(0).size() : 0;
}
uint64_t SizeOf(const grpc::ByteBuffer& response) { return response.Length(); }

absl::Status CheckFirst(const BenchCase& bench_case,
                        const inference::ModelInferResponse& response) {
  if (response.outputs_size() != 1 || response.raw_output_contents_size() != 1) {
    return absl::InternalError(absl::StrCat(bench_case.name, ": ", response.outputs_size(),
                                            " outputs and ", response.raw_output_contents_size(),
                                            " raw contents, expected one of each"));
  }
  const std::string content(bench_case.content.begin(), bench_case.content.end());
  if (bench_case.echoes && response.raw_output_contents(0) != content) {
    return absl::InternalError(absl::StrCat(bench_case.name, ": the answer is not the input"));
  }
  return absl::OkStatus();
}

// One client thread.
template <typename Request, typename Response>
class Client {
 public:
  Client(const GrpcTarget& target, const BenchCase& bench_case, int calls)
      : bench_case_(bench_case), calls_(static_cast<size_t>(calls)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(INT_MAX);
    arguments.SetMaxSendMessageSize(INT_MAX);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of our own
    stub_ = std::make_unique<grpc::TemplatedGenericStub<Request, Response>>(
        grpc::CreateCustomChannel(target.address, grpc::InsecureChannelCredentials(), arguments));
    Prepare(bench_case, &request_);
  }

  void Loop(int64_t begin_ns, int64_t end_ns) {
    size_t outstanding = 0;
    for (Call& call : calls_) outstanding += Send(&call, end_ns);
    while (outstanding > 0) {
      void* tag = nullptr;
      bool ok = false;
      if (!queue_.Next(&tag, &ok)) break;
      --outstanding;
      const int64_t now_ns = SystemClock().NowNs();
      Call& call = *static_cast<Call*>(tag);
      Judge(call);
      if (call.sent_ns >= begin_ns && now_ns <= end_ns) {
        latencies_ns_.push_back(now_ns - call.sent_ns);
      }
      if (status_.ok()) outstanding += Send(&call, end_ns);
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) continue;
  }

  const absl::Status& status() const { return status_; }
  const std::vector<int64_t>& latencies_ns() const { return latencies_ns_; }

 private:
  struct Call {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;
    Response response;
    grpc::Status status;
    int64_t sent_ns = 0;
    uint64_t expected_size = 0;  // 0: no answer yet
  };

  // 1 when a call is now outstanding, 0 when the time is up.
  size_t Send(Call* call, int64_t end_ns) {
    call->sent_ns = SystemClock().NowNs();
    if (call->sent_ns >= end_ns) return 0;
    call->reader.reset();
    call->context = std::make_unique<grpc::ClientContext>();
    call->context->set_wait_for_ready(true);
    call->context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    call->reader = stub_->PrepareUnaryCall(call->context.get(), kMethod, request_, &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->response, &call->status, call);
    return 1;
  }

  void Judge(Call& call) {
    if (!call.status.ok()) {
      status_ = absl::Status(static_cast<absl::StatusCode>(call.status.error_code()),
                             absl::StrCat(bench_case_.name, ": ", call.status.error_message()));
      return;
    }
    const uint64_t size = SizeOf(call.response);
    if (call.expected_size != 0) {
      if (size != call.expected_size) {
        status_ = absl::InternalError(absl::StrCat(bench_case_.name, ": an answer of ", size,
                                                   " bytes, the first had ", call.expected_size));
      }
      return;
    }
    call.expected_size = size;
    inference::ModelInferResponse message;
    status_ = ToMessage(call.response, &message)
                  ? CheckFirst(bench_case_, message)
                  : absl::InternalError(absl::StrCat(bench_case_.name, ": an unreadable answer"));
  }

  const BenchCase& bench_case_;
  std::unique_ptr<grpc::TemplatedGenericStub<Request, Response>> stub_;
  grpc::CompletionQueue queue_;
  Request request_;
  std::vector<Call> calls_;
  std::vector<int64_t> latencies_ns_;
  absl::Status status_;
};

// User and system time of another process, in seconds; -1 when it cannot be read.
double CpuSecondsOf(int pid) {
  if (pid == 0) return -1;
  std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(in, line);
  // The second field, the program's name in brackets, may hold blanks; counting begins behind it.
  const size_t behind_name = line.rfind(')');
  if (behind_name == std::string::npos) return -1;
  std::istringstream fields(line.substr(behind_name + 1));
  std::string skipped;
  for (int field = 3; field <= 13; ++field) fields >> skipped;
  double user = 0, system = 0;
  if (!(fields >> user >> system)) return -1;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

void SleepUntil(int64_t ns) {
  const int64_t now_ns = SystemClock().NowNs();
  if (now_ns < ns) std::this_thread::sleep_for(std::chrono::nanoseconds(ns - now_ns));
}

template <typename Request, typename Response>
absl::StatusOr<LoadResult> Run(const GrpcTarget& target, const BenchCase& bench_case,
                               const LoadPlan& plan) {
  const int count = std::max(1, std::min(target.client_threads, plan.concurrency));
  std::vector<std::unique_ptr<Client<Request, Response>>> clients;
  for (int i = 0; i < count; ++i) {
    const int calls = plan.concurrency / count + (i < plan.concurrency % count ? 1 : 0);
    clients.push_back(std::make_unique<Client<Request, Response>>(target, bench_case, calls));
  }
  const int64_t begin_ns = SystemClock().NowNs() + static_cast<int64_t>(plan.warmup_seconds * 1e9);
  const int64_t end_ns = begin_ns + static_cast<int64_t>(plan.seconds * 1e9);
  std::vector<std::thread> threads;
  for (auto& client : clients) {
    threads.emplace_back([&client, begin_ns, end_ns] { client->Loop(begin_ns, end_ns); });
  }
  SleepUntil(begin_ns);
  const double cpu_before = CpuSecondsOf(target.pid);
  SleepUntil(end_ns);
  const double cpu_after = CpuSecondsOf(target.pid);
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> latencies;
  for (const auto& client : clients) {
    MK_RETURN_IF_ERROR(client->status());
    latencies.insert(latencies.end(), client->latencies_ns().begin(), client->latencies_ns().end());
  }
  const bool cpu_known = cpu_before >= 0 && cpu_after >= 0;
  return Summarise(std::move(latencies), plan.seconds, cpu_known ? cpu_after - cpu_before : -1);
}

}  // namespace

absl::StatusOr<LoadResult> RunGrpcLoad(const GrpcTarget& target, const BenchCase& bench_case,
                                       const LoadPlan& plan) {
  if (target.messages) {
    return Run<inference::ModelInferRequest, inference::ModelInferResponse>(target, bench_case,
                                                                            plan);
  }
  return Run<grpc::ByteBuffer, grpc::ByteBuffer>(target, bench_case, plan);
}

}  // namespace mk
