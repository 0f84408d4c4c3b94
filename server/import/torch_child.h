// PyTorch's zip checkpoints, read by a child process: Python's standard library, an unpickler of
// our own that knows names and calls nothing, and limits on memory, time, files and the network.
#ifndef MERGEKERNEL_SERVER_IMPORT_TORCH_CHILD_H_
#define MERGEKERNEL_SERVER_IMPORT_TORCH_CHILD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/import/checkpoint.h"

namespace mk {

struct TorchOptions {
  std::string python = "python3";  // a program in PATH or a path
  std::string state_dict;          // key of the dict to take; "": model, state_dict, or the top
  uint64_t memory_bytes = uint64_t{768} << 20;  // address space of the child
  double silence_seconds = 60;                  // without a byte from it, it is ended
};

// Starts the converter on `fd`, a plain file of `file_size` bytes, and reads the header of what it
// sends. INVALID_ARGUMENT with the converter's words for a file it refuses; UNIMPLEMENTED when
// there is no Python; RESOURCE_EXHAUSTED when it met a limit. The child ends with the stream.
absl::StatusOr<std::unique_ptr<CheckpointStream>> OpenTorchCheckpoint(Fd fd, uint64_t file_size,
                                                                      const TorchOptions& options);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_IMPORT_TORCH_CHILD_H_
