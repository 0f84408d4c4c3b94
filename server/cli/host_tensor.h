// A tensor in the client's memory.
#ifndef MERGEKERNEL_SERVER_CLI_HOST_TENSOR_H_
#define MERGEKERNEL_SERVER_CLI_HOST_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

namespace mk::cli {

struct HostTensor {
  std::string datatype;  // the protocol's name
  std::vector<int64_t> shape;
  std::string data;  // packed for BYTES
};

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_HOST_TENSOR_H_
