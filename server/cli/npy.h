// NumPy's file of one array.
#ifndef MERGEKERNEL_SERVER_CLI_NPY_H_
#define MERGEKERNEL_SERVER_CLI_NPY_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/cli/host_tensor.h"

namespace mk::cli {

bool IsNpy(std::string_view file);  // by its first bytes

// A .npy file of version 1 to 3, C order, little-endian. INVALID_ARGUMENT with what is wrong; any
// bytes are safe.
absl::StatusOr<HostTensor> ParseNpy(std::string_view file);

// REQUIRES a datatype that NumPy has (not BF16, not BYTES); INVALID_ARGUMENT otherwise.
absl::StatusOr<std::string> WriteNpy(const HostTensor& tensor);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_NPY_H_
