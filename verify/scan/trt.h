// What the ONNX parser of a TensorRT version documents about a model's operators. Reported, never a
// verdict.
#ifndef MERGEKERNEL_VERIFY_SCAN_TRT_H_
#define MERGEKERNEL_VERIFY_SCAN_TRT_H_

#include <string>
#include <vector>

#include "verify/scan/report.h"

namespace mk::scan {

// "8.6", "10.3", "10.13", "10.16".
const std::vector<std::string>& TrtVersions();

// Fills in `report`'s trt fields for `version`, which must be one of TrtVersions().
void ListTrt(const Program& program, const std::string& version, Report* report);

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_TRT_H_
