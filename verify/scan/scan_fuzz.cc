// Any bytes end in a report or in InvalidArgument, and every writer takes the report. Limits are
// small, so that a run is quick; that they hold is part of what is tried.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "tests/fuzz/fuzz.h"
#include "verify/scan/scan.h"
#include "verify/scan/testing/graph_builder.h"

namespace mk::fuzz {
namespace {

using scan::testing::GraphBuilder;
using scan::testing::Ints;
using scan::testing::Scalar;

// A roll, an attention over windows' worth of tokens, a rotation, a data-dependent selection.
std::string Structures() {
  GraphBuilder g;
  const auto x = g.Input("x", {"batch", 4, 8});
  const auto slice = [&g](const std::string& of, int64_t begin, int64_t end) {
    return g.Node("Slice", {of, g.Const(Ints({begin})), g.Const(Ints({end})), g.Const(Ints({1}))});
  };
  const auto rolled = g.Node("Concat", {slice(x, 1, 4), slice(x, 0, 1)}, {{"axis", 1}});
  const auto turned = g.Node("Transpose", {rolled}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const auto scores = g.Node("Softmax", {g.Node("MatMul", {rolled, turned})}, {{"axis", -1}});
  const auto kept = g.Node("NonZero", {scores});
  g.Output(g.Node("GatherND", {x, g.Node("Transpose", {kept})}));
  return g.Model().SerializeAsString();
}

// A Loop that carries a state.
std::string Recurrence() {
  GraphBuilder body("body_");
  body.Input("i", {}, scan::kInt64);
  body.Input("go", {}, scan::kBool);
  const auto state = body.Input("h", {4});
  const auto next = body.Node("Tanh", {body.Node("Mul", {state, state})});
  body.Output("go");
  body.Output(next);
  GraphBuilder g;
  const auto x = g.Input("x", {4});
  g.Output(g.Node("Loop", {g.Const(Scalar(3)), "", x}, {{"body", body.graph()}}));
  return g.Model(13).SerializeAsString();
}

}  // namespace

std::vector<std::string> Seeds() { return {Structures(), Recurrence()}; }

}  // namespace mk::fuzz

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
    FUZZ_CHECK(report.status().code() == absl::StatusCode::kInvalidArgument);
    return 0;
  }
  Text(*report, true);
  Json({*report});
  Html({*report});
  return 0;
}
