// Tensors on the command line: shapes, files, values, raw bytes, random data.
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
#include "server/cli/host_tensor.h"

namespace mk::cli {

// "1,2,3"; "" is a scalar.
absl::StatusOr<std::vector<int64_t>> ParseShape(const std::string& text);

// Requests from the flags --input NAME=FILE, --value NAME=TEXT, --shape NAME=DIMS and the model's
// metadata: every input that is not optional, from its file (.npy by its magic, otherwise raw bytes
// that need a full shape), from its values (which give the one dim that is left open), or random
// where `random` allows it.
struct InputFlags {
  std::map<std::string, std::string> files;
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, std::string> shapes;
  bool random = false;
};

// "NAME=VALUE" into a map; INVALID_ARGUMENT naming `flag` where one reads otherwise or comes twice.
absl::StatusOr<std::map<std::string, std::string>> ParseAssignments(
    const char* flag, const std::vector<std::string>& texts);

// The flags as they were typed; `random` as given.
absl::StatusOr<InputFlags> ParseInputFlags(const std::vector<std::string>& inputs,
                                           const std::vector<std::string>& values,
                                           const std::vector<std::string>& shapes, bool random);

absl::StatusOr<std::string> ReadFile(const std::string& path);

// Bytes of `count` elements; repeatable pseudo-random numbers in [-1, 1) for floats, full range for
// integers.
std::string RandomData(const std::string& datatype, uint64_t count, uint64_t seed);

// Adds the inputs to `request`. INVALID_ARGUMENT naming the flag or the input that is wrong or
// missing.
absl::Status FillInputs(const inference::ModelMetadataResponse& metadata,
                        const std::map<std::string, bool>& optional, const InputFlags& flags,
                        inference::ModelInferRequest* request);

void AddInput(const std::string& name, const HostTensor& tensor,
              inference::ModelInferRequest* request);

// One BYTES element.
HostTensor BytesTensor(std::string_view element);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_TENSORS_H_
