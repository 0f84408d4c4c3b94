// Hidden operators, and what is worth a remark without being a blind spot.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "core/base/text.h"
#include "verify/scan/findings.h"
#include "verify/scan/walk.h"

namespace mk::scan {
namespace {

void Hidden(const Program& program, NodeId id, Findings* findings) {
  const Node& node = program.node(id);
  const std::string type = Printable(node.proto->op_type(), 80);
  if (node.op == Op::kForeign)
    findings->AddHidden(
        id, absl::StrCat("operator ", type, " of domain '", Printable(node.proto->domain(), 80),
                         "': its structure is not known"));
  if (node.op == Op::kUnlisted)
    findings->AddHidden(id, absl::StrCat("unknown operator ", type, " at opset ", program.opset));
  if (SinceVersion(node.op) > program.opset)
    findings->AddRemark("op-too-new", id,
                        absl::StrCat(type, " came with opset ", SinceVersion(node.op),
                                     ", the file states ", program.opset));
}

void TopK(const Program& program, NodeId id, Findings* findings) {
  const Node& node = program.node(id);
  double k = static_cast<double>(IntAttribute(*node.proto, "k", -1));
  if (node.In(1) != kNone) {
    const SmallTensor* given = Contents(program, node, 1);
    if (!given || !given->Scalar()) {
      if (!program.IsDataValue(node.In(1)))
        findings->AddRemark("topk-k-from-shape", id,
                            "k is shape-only: it follows from the shape of an input");
      return;
    }
    k = *given->Scalar();
  }
  if (k > 3840)
    findings->AddRemark(
        "topk-k-limit", id,
        absl::StrCat("TopK k > 3840: k is ", k, "; TensorRT documents 3840 as its limit"));
  if (k == 0) findings->AddRemark("topk-k-zero", id, "k is 0: the result is empty");
  const ValueId data = node.In(0);
  if (data == kNone || !program.value(data).has_rank) return;
  const Dims& dims = program.value(data).dims;
  const auto axis = Axis(IntAttribute(*node.proto, "axis", -1), static_cast<int64_t>(dims.size()));
  if (axis && dims[static_cast<size_t>(*axis)] >= 0 &&
      k > static_cast<double>(dims[static_cast<size_t>(*axis)]))
    findings->AddRemark(
        "topk-k-too-large", id,
        absl::StrCat("k ", k, " > ", dims[static_cast<size_t>(*axis)], ", the size of its axis"));
}

void Reshape(const Program& program, NodeId id, Findings* findings) {
  const Node& node = program.node(id);
  const SmallTensor* target = Contents(program, node, 1);
  if (!target || node.In(0) == kNone || !program.value(node.In(0)).has_rank) return;
  const auto rank = program.value(node.In(0)).dims.size();
  int64_t free_axes = 0;
  for (size_t i = 0; i < target->elements.size(); ++i) {
    const Element& element = target->elements[i];
    if (element.state != Element::kNumber) continue;
    free_axes += element.number == -1;
    if (element.number == 0 && i >= rank && IntAttribute(*node.proto, "allowzero", 0) == 0)
      findings->AddRemark(
          "reshape-illegal", id,
          absl::StrCat("dimension ", i, " of the target is 0 (copy), but the input has ", rank,
                       " dimensions"));
  }
  if (free_axes > 1)
    findings->AddRemark("reshape-illegal", id, "more than one dimension of the target is -1");
}

}  // namespace

void FindRemarks(const Program& program, Findings* findings) {
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    const Node& node = program.nodes[i];
    Hidden(program, id, findings);
    switch (node.op) {
      case Op::kTopK:
        TopK(program, id, findings);
        break;
      case Op::kReshape:
        Reshape(program, id, findings);
        break;
      case Op::kCumSum:
      case Op::kCumProd:
        if (node.is_const) break;
        findings->AddRemark(
            "prefix-op", id,
            absl::StrCat(OpName(node.op), " is a prefix operator; by itself it is no blind spot"));
        if (node.In(1) != kNone && !program.value(node.In(1)).IsConst())
          findings->AddRemark("prefix-axis", id, "the axis is an input, not a constant");
        break;
      case Op::kGather:
        if (node.In(0) != kNone && program.value(node.In(0)).IsConst() &&
            program.IsDataValue(node.In(1)))
          findings->AddRemark("table-lookup", id,
                              "rows of a constant table by data (an embedding): no blind spot");
        break;
      default:
        break;
    }
  }
}

}  // namespace mk::scan
