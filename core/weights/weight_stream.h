// Streams a safetensors file from one descriptor, in one pass, into the places a pack asked for:
// read, hashed, checked, converted. The file is never resident twice, and what was hashed is what
// is used.
#ifndef MERGEKERNEL_CORE_WEIGHTS_WEIGHT_STREAM_H_
#define MERGEKERNEL_CORE_WEIGHTS_WEIGHT_STREAM_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/abi/mk_pack.h"

namespace mk {

struct WeightStreamOptions {
  std::string file_name;        // for messages
  std::string expected_sha256;  // 64 hex digits; empty: not checked
  // Copies converted bytes to where the host cannot write itself, for all weights but those of
  // MK_WEIGHT_HOST. `from` may be reused when it returns. Empty: destinations are written directly.
  std::function<absl::Status(void* to, const void* from, uint64_t size_bytes)> place = nullptr;
};

// Fills `weights` from `fd`, read from offset 0 by pread. Destinations that the host can write,
// unless `place` does it. INVALID_ARGUMENT: missing tensors (counts loaded/expected/extra, the
// first five names, the nearest surplus name in the file), surplus ones, a shape or type that
// differs (both shapes), a value that is not finite (tensor, index, value). DATA_LOSS: the digest
// differs (first 8 digits of both), or the file ended early or changed size while being read.
absl::Status StreamWeights(int fd, const WeightStreamOptions& options,
                           absl::Span<mk_weight> weights);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_WEIGHTS_WEIGHT_STREAM_H_
