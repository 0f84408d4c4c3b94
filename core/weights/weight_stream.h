// Streams a safetensors file from one descriptor, in one pass, into the places a pack asked for:
// read, hashed, checked, converted. The file is never resident twice, and what was hashed is what
// is used.
#ifndef MERGEKERNEL_CORE_WEIGHTS_WEIGHT_STREAM_H_
#define MERGEKERNEL_CORE_WEIGHTS_WEIGHT_STREAM_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/abi/mk_pack.h"

namespace mk {

struct WeightStreamOptions {
  std::string file_name;        // for messages
  std::string expected_sha256;  // 64 hex digits; empty: not checked
};

// Fills `weights` from `fd`, read from offset 0 by pread. Host-addressable destinations.
// INVALID_ARGUMENT: missing tensors (counts loaded/expected/extra, the first five names, the
// nearest surplus name in the file), surplus ones, a shape or type that differs (both shapes), a
// value that is not finite (tensor, index, value). DATA_LOSS: the digest differs (first 8 digits of
// both), or the file ended early or changed size while being read.
absl::Status StreamWeights(int fd, const WeightStreamOptions& options,
                           absl::Span<mk_weight> weights);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_WEIGHTS_WEIGHT_STREAM_H_
