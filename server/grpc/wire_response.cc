#include "server/grpc/wire_response.h"

#include <grpcpp/support/slice.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/dtype.h"
#include "server/grpc/proto_wire.h"

namespace mk {
namespace {

// Below this a copy into the header costs less than a slice of its own.
constexpr uint64_t kInlineBytes = 8192;

// Field ids of ModelInferResponse and InferOutputTensor.
std::string OutputHeader(const OutputTensor& output) {
  std::string shape, tensor;
  for (const int64_t dim : output.shape) AppendVarint(&shape, static_cast<uint64_t>(dim));
  AppendBytes(&tensor, 1, output.name);
  AppendBytes(&tensor, 2, DtypeName(output.dtype));
  if (!shape.empty()) AppendBytes(&tensor, 3, shape);
  return tensor;
}

grpc::Slice SliceOf(HostBlock block) {
  auto* owner = new HostBlock(std::move(block));  // given to gRPC, which calls the function below
  return grpc::Slice(
      owner->data(), owner->size(), [](void* data) { delete static_cast<HostBlock*>(data); },
      owner);
}

}  // namespace

grpc::ByteBuffer WriteInferResponse(const std::string& model, int64_t version,
                                    const std::string& id, InferResponse response) {
  std::vector<grpc::Slice> slices;
  std::string header;
  AppendBytes(&header, 1, model);
  AppendBytes(&header, 2, std::to_string(version));
  if (!id.empty()) AppendBytes(&header, 3, id);
  for (const OutputTensor& output : response.outputs) AppendBytes(&header, 5, OutputHeader(output));
  for (OutputTensor& output : response.outputs) {
    AppendTag(&header, 6, kBytes);
    AppendVarint(&header, output.block.size());
    if (output.block.size() <= kInlineBytes) {
      if (!output.block.empty()) {
        header.append(static_cast<const char*>(output.block.data()), output.block.size());
      }
      continue;
    }
    slices.emplace_back(header);
    header.clear();
    slices.push_back(SliceOf(std::move(output.block)));
  }
  if (!header.empty()) slices.emplace_back(header);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::Status ToGrpc(const absl::Status& status, int64_t retry_ms) {
  const auto code = static_cast<grpc::StatusCode>(status.code());
  std::string message(status.message());
  if (status.code() != absl::StatusCode::kUnavailable) return grpc::Status(code, message);
  // google.rpc.Status{code, message, details: [Any{RetryInfo{Duration{seconds, nanos}}}]}
  std::string duration, info, any, details;
  AppendNumber(&duration, 1, static_cast<uint64_t>(retry_ms / 1000));
  AppendNumber(&duration, 2, static_cast<uint64_t>(retry_ms % 1000 * 1'000'000));
  AppendBytes(&info, 1, duration);
  AppendBytes(&any, 1, "type.googleapis.com/google.rpc.RetryInfo");
  AppendBytes(&any, 2, info);
  AppendNumber(&details, 1, static_cast<uint64_t>(code));
  AppendBytes(&details, 2, message);
  AppendBytes(&details, 3, any);
  return grpc::Status(code, message, details);
}

}  // namespace mk
