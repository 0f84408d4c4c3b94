// Copies a checkpoint's tensors into a pack's weights file: read, judged, written and hashed in one
// pass, with memory that does not grow with the file.
#ifndef MERGEKERNEL_SERVER_IMPORT_COPY_WEIGHTS_H_
#define MERGEKERNEL_SERVER_IMPORT_COPY_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/import/checkpoint.h"

namespace mk {

// What becomes of one tensor of the checkpoint.
struct CopiedTensor {
  bool skipped = false;        // read over; the rest is empty
  std::string name;            // in the written file
  std::vector<int64_t> shape;  // as many elements as stored
};

struct CopyHooks {
  std::function<void(uint64_t done, uint64_t total)> progress;  // bytes; may be empty
  std::function<bool()> stop;                                   // true: give up; may be empty
};

struct CopiedFile {
  std::string sha256;
  uint64_t size_bytes = 0;
  uint64_t parameters = 0;            // elements written
  std::vector<std::string> all_zero;  // written tensors of rank 2 and more without a non-zero
};

// Most tensors that one refusal names.
inline constexpr size_t kMaxNamedTensors = 20;

// Writes a safetensors file to `fd` (empty, at its start): tensors[i] says what becomes of
// stream.header().tensors[i], stored types stay as they are. INVALID_ARGUMENT naming every tensor
// with a value that is no finite fp32 number, or with a type that does not turn to fp32; CANCELLED
// when `stop` said so; RESOURCE_EXHAUSTED for a full disk; whatever the stream says. Blocks.
absl::StatusOr<CopiedFile> CopyWeights(CheckpointStream& stream,
                                       const std::vector<CopiedTensor>& tensors,
                                       const std::map<std::string, std::string>& metadata, int fd,
                                       const CopyHooks& hooks);

// All of `bytes` to `fd`. RESOURCE_EXHAUSTED for a full disk or quota, INTERNAL otherwise.
absl::Status WriteAll(int fd, std::string_view bytes);

// "a\n  b\n  ... and 3 more": a refusal's lines, cut to kMaxNamedTensors.
std::string ListProblems(const std::vector<std::string>& problems);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_IMPORT_COPY_WEIGHTS_H_
