// One ModelInfer call, from the bytes of the request to those of the answer.
#ifndef MERGEKERNEL_SERVER_GRPC_INFER_CALL_H_
#define MERGEKERNEL_SERVER_GRPC_INFER_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>

#include "core/base/clock.h"
#include "core/loader/registry.h"
#include "core/metrics/model_stats.h"
#include "core/run/host_pool.h"

namespace mk {

// What calls need of the daemon. All of it outlives the server.
struct InferBackend {
  Registry& registry;
  HostPool& pool;
  StatsTable& stats;
  const Clock& clock;
};

// Starts the call; the reactor owns itself and everything of the request, until gRPC has let go of
// it (OnDone) and the lane has completed it. A cancel only raises the stop signal, which outlives
// both.
grpc::ServerUnaryReactor* StartInferCall(const InferBackend& backend,
                                         grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_GRPC_INFER_CALL_H_
