// From the file's graph to a Program: names become numbers, functions are expanded, constants are
// folded, and each value learns its shape and what it depends on.
#ifndef MERGEKERNEL_VERIFY_SCAN_LOWER_H_
#define MERGEKERNEL_VERIFY_SCAN_LOWER_H_

#include "absl/status/status.h"
#include "verify/scan/program.h"

namespace mk::scan {

struct LowerLimits {
  int64_t nodes = 1'000'000;          // in the program, after functions are expanded
  int64_t work = 3'000'000;           // nodes looked at, bodies of loops more than once
  int64_t folded_elements = 2 << 20;  // held in all; above, only tensors up to 1024 elements
  int64_t fold_work = 64 << 20;       // elements made by folding; above, nothing is folded any more
  int depth = 48;                     // bodies and functions within each other
};

// `program` keeps pointers into `model`, which must outlive it.
// Errors: InvalidArgument when the opset is not one known here or a bound is broken.
absl::Status Lower(const onnx::ModelProto& model, const LowerLimits& limits, Program* program);

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_LOWER_H_
