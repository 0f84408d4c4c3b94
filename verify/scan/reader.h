// Bytes to the part of an ONNX model that the scanner looks at. Tensor data above a small limit is
// skipped on the wire: a file's reader moves on, nothing is read or kept. Every count and length
// has a bound before memory is taken, so that any bytes end in a model or in a clear error.
#ifndef MERGEKERNEL_VERIFY_SCAN_READER_H_
#define MERGEKERNEL_VERIFY_SCAN_READER_H_

#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "verify/scan/onnx.pb.h"

namespace mk::scan {

struct ReadLimits {
  // Tensor data kept: this much of a tensor of indices or a square matrix, this much of others, and
  // in all.
  uint32_t kept_tensor_bytes = 256 << 10;
  uint32_t kept_number_bytes = 4 << 10;
  uint64_t kept_total_bytes = 16 << 20;
  // Messages, strings and repeated numbers in all, and the longest name.
  int64_t items = 4'000'000;
  uint32_t name_bytes = 16 << 10;
  uint64_t text_bytes = 96 << 20;
  // Graphs within graphs (If, Loop, Scan), and messages within types.
  int graph_depth = 16;
};

// Reads a ModelProto. `progress`, where given, is called now and then with the bytes read so far.
// Errors: InvalidArgument (not ONNX, or a bound is broken); the message names field, value and
// bound. Pure: the result depends on the bytes alone.
absl::Status ReadModel(google::protobuf::io::ZeroCopyInputStream* bytes, const ReadLimits& limits,
                       const std::function<void(int64_t)>& progress, onnx::ModelProto* model);

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_READER_H_
