// The Open Inference Protocol service over core types, and the server that listens.
#ifndef MERGEKERNEL_SERVER_GRPC_SERVICE_H_
#define MERGEKERNEL_SERVER_GRPC_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/loader/registry.h"
#include "server/grpc/infer_call.h"

namespace mk {

class ControlPool;

struct GrpcOptions {
  std::string address;  // host:port (port 0: a free one) or unix:PATH
  int64_t max_message_bytes = 64 << 20;
  int64_t keepalive_min_interval_ms = 10'000;
  int64_t memory_quota_bytes = int64_t{1} << 30;  // of gRPC's own buffers
  std::string version;                            // of the daemon, for ServerMetadata
  std::string device;  // "cpu: AMD EPYC": initial metadata `mergekernel-device` of ServerMetadata
};

// The listening server. Create, Stop and the destructor: the main thread. The rest: any thread.
class GrpcServer {
 public:
  // `ready` answers ServerReady. All references outlive the server. INVALID_ARGUMENT or
  // UNAVAILABLE, naming the address, when it cannot listen.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Create(const GrpcOptions& options,
                                                            const InferBackend& backend,
                                                            ControlPool& control,
                                                            const std::atomic<bool>& ready);
  virtual ~GrpcServer() = default;

  virtual const std::string& address() const = 0;  // with the port it got

  // grpc.health.v1: "" and the service's name follow `serving`; "<pack>" and "<pack>/<version>" the
  // registry's states.
  virtual void SetServing(bool serving) = 0;
  virtual void SetPackState(const std::string& name, int64_t version, PackState state) = 0;

  // Refuses new calls, lets those under way end, cancels what is left after `grace_seconds`.
  // Blocks.
  virtual void Stop(double grace_seconds) = 0;
};

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_GRPC_SERVICE_H_
