// mk scan: which of the five blind spots an ONNX model hits. docs/scan.md says how the rules
// decide.
#ifndef MERGEKERNEL_VERIFY_SCAN_SCAN_H_
#define MERGEKERNEL_VERIFY_SCAN_SCAN_H_

#include <google/protobuf/io/zero_copy_stream.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "verify/scan/lower.h"
#include "verify/scan/reader.h"
#include "verify/scan/report.h"

namespace mk::scan {

struct ScanOptions {
  ReadLimits read;
  LowerLimits lower;
  std::string trt_version;                // "8.6", "10.3", "10.13", "10.16", or "" for none
  std::function<void(int64_t)> progress;  // bytes read so far; may be empty
};

// The scan of a model that is there as bytes. Pure: opens nothing, and any bytes end in a report or
// in InvalidArgument. External data is neither looked for nor judged. `model` receives what was
// read, where it is not null.
absl::StatusOr<Report> ScanBytes(google::protobuf::io::ZeroCopyInputStream* bytes,
                                 const ScanOptions& options, onnx::ModelProto* model = nullptr);

// The scan of a file. External data is judged by its header: no file outside of the model's folder
// is opened, and none of its contents is read. Blocks on the disk.
// Errors: NotFound, PermissionDenied (the file cannot be read); InvalidArgument (it is no ONNX
// model, it is larger than protobuf's 2 GiB, or a bound is broken).
absl::StatusOr<Report> ScanFile(const std::string& path, const ScanOptions& options);

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_SCAN_H_
