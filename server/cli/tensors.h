// Tensors on the command line: shapes, .npy files, raw bytes, random data.
#ifndef MERGEKERNEL_SERVER_CLI_TENSORS_H_
#define MERGEKERNEL_SERVER_CLI_TENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/inference/grpc_service.pb.h"

namespace mk::cli {

struct HostTensor {
  std::string datatype;  // the protocol's name
  std::vector<int64_t> shape;
  std::string data;  // packed for BYTES
};

// A .npy file of version 1 to 3, C order, little-endian. INVALID_ARGUMENT with what is wrong; any
// bytes are safe.
absl::StatusOr<HostTensor> ParseNpy(std::string_view file);
// REQUIRES a datatype that NumPy has (not BF16, not BYTES); INVALID_ARGUMENT otherwise.
absl::StatusOr<std::string> WriteNpy(const HostTensor& tensor);

// "1,2,3"; "" is a scalar.
absl::StatusOr<std::vector<int64_t>> ParseShape(const std::string& text);

// "NAME=VALUE" into a map; INVALID_ARGUMENT naming `flag` otherwise.
absl::StatusOr<std::map<std::string, std::string>> ParseAssignments(
    const char* flag, const std::vector<std::string>& texts);

absl::StatusOr<std::string> ReadFile(const std::string& path);

// Bytes of `count` elements; repeatable pseudo-random numbers in [-1, 1) for floats, full range for
// integers.
std::string RandomData(const std::string& datatype, uint64_t count, uint64_t seed);

// Requests from the flags --input NAME=FILE, --shape NAME=DIMS and the model's metadata: every
// input that is not optional, from its file (.npy by its magic, otherwise raw bytes that need a
// full shape), or random where `random` allows it.
struct InputFlags {
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> shapes;
  bool random = false;
};
absl::Status FillInputs(const inference::ModelMetadataResponse& metadata,
                        const std::map<std::string, bool>& optional, const InputFlags& flags,
                        inference::ModelInferRequest* request);

void AddInput(const std::string& name, const HostTensor& tensor,
              inference::ModelInferRequest* request);

// One BYTES element.
HostTensor BytesTensor(std::string_view element);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_TENSORS_H_
