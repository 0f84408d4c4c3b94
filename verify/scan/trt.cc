#include "verify/scan/trt.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/text.h"
#include "verify/scan/walk.h"

namespace mk::scan {
namespace {

enum Check {
  kAlways,
  kAttention,
  kEinsum,
  kInput1,  // input 1 is there and no constant
  kInput3,
  kLayout,
  kOneOutput,
  kPool,
  kRank4,
  kRanks,
  kReduction,
  kResize,
  kStaticInput,
  kTopK,
};

struct TableRow {
  Op op;
  const char* states;
  Check check;
  const char* text;
};

constexpr TableRow kTable[] = {
#define MK_TRT(op, states, check, text) {Op::k##op, states, check, text},
#include "verify/scan/trt_table.inc"
#undef MK_TRT
};

struct Version {
  const char* name;
  const char* source;
  int64_t newest_opset;
};
constexpr Version kVersions[] = {
    {"8.6", "onnx-tensorrt docs/operators.md, branch 8.6-GA, 2024-04-04", 17},
    {"10.3",
     "onnx-tensorrt docs/operators.md, branch 10.1-GA, 2024-06-17, and changelog to 2024-08-07",
     20},
    {"10.13",
     "onnx-tensorrt docs/operators.md of 10.15, 2026-02-02, less its changelog from 10.14 on", 24},
    {"10.16", "onnx-tensorrt docs/operators.md of 10.15, 2026-02-02, the newest found", 24},
};

bool IsVariable(const Program& program, ValueId id) {
  return id != kNone && !program.value(id).IsConst();
}

bool HasRank(const Program& program, ValueId id, size_t rank) {
  return id == kNone || !program.value(id).has_rank || program.value(id).dims.size() == rank;
}

bool IsRank3(const Program& program, ValueId id) {
  return id != kNone && program.value(id).has_rank && program.value(id).dims.size() == 3;
}

// Whether the dilations are all ones, or none are given.
bool HasDilations(const Node& node) {
  for (const int64_t dilation : IntsAttribute(*node.proto, "dilations")) {
    if (dilation != 1) return true;
  }
  return false;
}

bool BreaksResize(const Node& node) {
  const std::string mode = TextAttribute(*node.proto, "mode", "nearest");
  const std::string coordinates =
      TextAttribute(*node.proto, "coordinate_transformation_mode", "half_pixel");
  const std::string kKnown[] = {"half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn",
                                "asymmetric", "align_corners"};
  return (mode != "nearest" && mode != "linear") ||
         IntAttribute(*node.proto, "antialias", 0) != 0 ||
         std::find(std::begin(kKnown), std::end(kKnown), coordinates) == std::end(kKnown);
}

bool BreaksRanks(const Program& program, const Node& node) {
  if (node.bodies.size() != 2) return true;
  const auto& a = program.scopes[static_cast<size_t>(node.bodies[0])].outputs;
  const auto& b = program.scopes[static_cast<size_t>(node.bodies[1])].outputs;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] != kNone && program.value(a[i]).has_rank &&
        !HasRank(program, b[i], program.value(a[i]).dims.size()))
      return true;
  }
  return false;
}

bool BreaksTopK(const Program& program, const Node& node) {
  const SmallTensor* k = Contents(program, node, 1);
  return IntAttribute(*node.proto, "sorted", 1) != 1 || (k && k->Scalar() && *k->Scalar() >= 3840);
}

bool Breaks(const Program& program, const Node& node, Check check) {
  switch (check) {
    case kAlways:
      return true;
    case kAttention:
      return !HasRank(program, node.In(0), 4) || !HasRank(program, node.In(3), 4) ||
             node.In(4) != kNone || node.In(5) != kNone || node.out.size() > 1 ||
             FloatAttribute(*node.proto, "softcap", 0) != 0;
    case kEinsum:
      return TextAttribute(*node.proto, "equation", "").find('.') != std::string::npos;
    case kInput1:
      return IsVariable(program, node.In(1));
    case kInput3:
      return IsVariable(program, node.In(3));
    case kLayout:
      return IntAttribute(*node.proto, "layout", 0) != 0 ||
             IntAttribute(*node.proto, "input_forget", 0) != 0;
    case kOneOutput:
      return node.out.size() > 1;
    case kPool:
      return HasDilations(node) || node.out.size() > 1 || IsRank3(program, node.In(0));
    case kRank4:
      return !HasRank(program, node.In(0), 4);
    case kRanks:
      return BreaksRanks(program, node);
    case kReduction:
      return TextAttribute(*node.proto, "reduction", "none") != "none";
    case kResize:
      return BreaksResize(node);
    case kStaticInput: {
      if (node.In(0) == kNone || !program.value(node.In(0)).has_rank) return true;
      const Dims& dims = program.value(node.In(0)).dims;
      return std::any_of(dims.begin(), dims.end(), [](Dim dim) { return dim < 0; });
    }
    case kTopK:
      return BreaksTopK(program, node);
  }
  return true;
}

}  // namespace

const std::vector<std::string>& TrtVersions() {
  static const auto* const names = [] {
    auto* list = new std::vector<std::string>;
    for (const Version& version : kVersions) list->push_back(version.name);
    return list;
  }();
  return *names;
}

void ListTrt(const Program& program, const std::string& version, Report* report) {
  const auto& names = TrtVersions();
  const auto at =
      static_cast<size_t>(std::find(names.begin(), names.end(), version) - names.begin());
  if (at >= names.size()) return;
  report->trt_version = version;
  report->trt_source = kVersions[at].source;
  if (program.opset > kVersions[at].newest_opset)
    report->trt.push_back({"opset", "",
                           absl::StrCat("the file states opset ", program.opset,
                                        ", the document goes to ", kVersions[at].newest_opset),
                           true});
  for (const Node& node : program.nodes) {
    if (node.is_const || report->trt.size() >= 1000) continue;
    if (node.op == Op::kForeign || node.op == Op::kContrib) {
      report->trt.push_back({Printable(node.proto->op_type(), 80), NodeName(program, node),
                             "another domain: needs a plugin", false});
      continue;
    }
    const auto row = std::find_if(std::begin(kTable), std::end(kTable),
                                  [&](const TableRow& r) { return r.op == node.op; });
    if (row == std::end(kTable) || row->states[at] == 'y') continue;
    const bool is_supported = row->states[at] == 'r';
    if (is_supported && !Breaks(program, node, row->check)) continue;
    report->trt.push_back(
        {OpName(node.op), NodeName(program, node), is_supported ? row->text : "", is_supported});
  }
}

}  // namespace mk::scan
