// External tensor data, judged by its header alone.
#ifndef MERGEKERNEL_VERIFY_SCAN_EXTERNAL_H_
#define MERGEKERNEL_VERIFY_SCAN_EXTERNAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "verify/scan/findings.h"
#include "verify/scan/onnx.pb.h"

namespace mk::scan {

// Adds the bytes that `model` keeps outside to `*bytes`, and a problem for each tensor whose data
// is refused: "external-path" (absolute, "..", empty), "external-link" (a symbolic or hard link),
// "external-missing", "external-range" (offset and length against the file), "external-size"
// (length against type and shape). Looks at files below `folder` only, by descriptor and without
// following links; reads nothing from them.
void JudgeExternal(const onnx::ModelProto& model, const std::string& folder, uint64_t* bytes,
                   std::vector<Remark>* problems);

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_EXTERNAL_H_
