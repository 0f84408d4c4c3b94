// libFuzzer target: any bytes end in a report or in InvalidArgument, and every writer takes the
// report. Limits are small, so that a run is quick; that they hold is part of what is tried.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdint>
#include <cstdlib>

#include "verify/scan/scan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mk::scan;
  google::protobuf::io::ArrayInputStream bytes(data, static_cast<int>(size));
  ScanOptions options;
  options.read.items = 20'000;
  options.read.text_bytes = 1 << 20;
  options.lower.nodes = 2'000;
  options.lower.work = 6'000;
  options.lower.folded_elements = 1 << 16;
  options.trt_version = "10.3";
  const auto report = ScanBytes(&bytes, options);
  if (!report.ok()) {
    if (report.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
    return 0;
  }
  Text(*report, true);
  Json({*report});
  Html({*report});
  return 0;
}
