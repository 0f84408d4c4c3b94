// S1: data-dependent shape or control flow. A cause is a node whose output's shape, or whose branch
// or number of turns, follows from what the inputs hold. What merely comes after such a node is no
// second cause: the shape of a tensor is never data here, however it came about.
#include <array>
#include <map>
#include <utility>

#include "verify/scan/findings.h"
#include "verify/scan/walk.h"

namespace mk::scan {
namespace {

// Inputs that set the shape of the output, by operator.
std::vector<size_t> ShapeOperands(const Node& node) {
  switch (node.op) {
    case Op::kReshape:
    case Op::kExpand:
    case Op::kTile:
    case Op::kPad:
    case Op::kUnsqueeze:
    case Op::kSqueeze:
    case Op::kSplit:
    case Op::kOneHot:
    case Op::kTopK:
    case Op::kUpsample:
    case Op::kCenterCropPad:
    case Op::kAffineGrid:
    case Op::kCompress:
    case Op::kSplitToSequence:
    case Op::kDFT:
      return {1};
    case Op::kSlice:
      return {1, 2, 3, 4};
    case Op::kResize:
      return node.in.size() == 2 ? std::vector<size_t>{1} : std::vector<size_t>{2, 3};
    case Op::kConstantOfShape:
    case Op::kHannWindow:
    case Op::kHammingWindow:
    case Op::kBlackmanWindow:
      return {0};
    case Op::kRange:
      return {0, 1, 2};
    case Op::kMaxUnpool:
      return {2};
    case Op::kCol2Im:
      return {1, 2};
    default:
      return IsReduction(node.op) ? std::vector<size_t>{1} : std::vector<size_t>{};
  }
}

// Where a shape operand's value comes from: back through arithmetic to an input or another kind of
// node, so that ten Resizes by one input are one structure.
ValueId Root(const Program& program, ValueId id) {
  for (int i = 0; i < 64; ++i) {
    const Node* node = program.ProducerOf(id);
    if (!node) return id;
    const bool passes = IsElementwise(node->op) || IsLayout(node->op) || IsReduction(node->op) ||
                        node->op == Op::kConcat || node->op == Op::kSlice ||
                        node->op == Op::kGather || node->op == Op::kSplit;
    if (!passes) return id;
    ValueId next = kNone;
    for (const ValueId in : node->in) {
      if (next == kNone && program.IsDataValue(in)) next = in;
    }
    if (next == kNone) return id;
    id = next;
  }
  return id;
}

// The first node after `id` that is no mere layout: who has to live with the shape.
std::string Consumer(const Program& program, NodeId id) {
  std::string found;
  for (const ValueId out : program.node(id).out) {
    if (out == kNone || !found.empty()) continue;
    Forward(
        program, out, 32,
        [&](NodeId next, ValueId) {
          const Node& node = program.node(next);
          if (IsLayout(node.op) || node.op == Op::kShape || node.op == Op::kSplit) return false;
          found = node.proto->op_type() + " " + NodeName(program, node);
          return true;
        },
        [&](NodeId next, ValueId) {
          const Op op = program.node(next).op;
          return IsLayout(op) || op == Op::kSplit;
        });
  }
  return found;
}

bool RanksDiffer(const Program& program, const Node& node) {
  if (node.bodies.size() != 2) return false;
  const auto& a = program.scopes[static_cast<size_t>(node.bodies[0])].outputs;
  const auto& b = program.scopes[static_cast<size_t>(node.bodies[1])].outputs;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] == kNone || b[i] == kNone) continue;
    const Value &x = program.value(a[i]), &y = program.value(b[i]);
    if (x.has_rank && y.has_rank && x.dims.size() != y.dims.size()) return true;
  }
  return false;
}

class DataDependent {
 public:
  DataDependent(const Program& program, Findings* findings)
      : program_(program), findings_(*findings) {}

  void Run() {
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!program_.nodes[i].is_const) One(static_cast<NodeId>(i));
    }
    for (const auto& [key, nodes] : by_root_) {
      const std::string name = key.second == kNone ? "" : program_.value(key.second).name;
      Structure* structure = findings_.Add(kS1, "a value becomes a shape",
                                           "the shape follows from what '" + name + "' holds");
      for (const NodeId node : nodes) findings_.AddSite(structure, node);
    }
  }

 private:
  void Alone(NodeId id, const char* kind, std::string note) {
    const std::string consumer = Consumer(program_, id);
    if (!consumer.empty()) note += (note.empty() ? "" : "; ") + ("feeds " + consumer);
    findings_.AddSite(findings_.Add(kS1, kind, std::move(note)), id);
  }

  void One(NodeId id) {
    const Node& node = program_.node(id);
    switch (node.op) {
      case Op::kNonZero:
      case Op::kUnique:
        if (program_.IsDataValue(node.In(0))) Alone(id, "as many results as the data says", "");
        return;
      case Op::kNonMaxSuppression:
        if (program_.IsDataValue(node.In(0)) || program_.IsDataValue(node.In(1)))
          Alone(id, "as many results as the data says", "");
        return;
      case Op::kCompress:
        if (program_.IsDataValue(node.In(1))) Alone(id, "as many results as the data says", "");
        return;
      case Op::kImageDecoder:
      case Op::kStringSplit:
        Alone(id, "as many results as the data says", "");
        return;
      case Op::kIf:
        return Branch(id);
      case Op::kLoop:
        return Turns(id);
      default:
        break;
    }
    for (const size_t operand : ShapeOperands(node)) {
      if (!program_.IsDataValue(node.In(operand))) continue;
      by_root_[{static_cast<int>(node.scope), Root(program_, node.In(operand))}].push_back(id);
      return;
    }
  }

  void Branch(NodeId id) {
    const Node& node = program_.node(id);
    const bool on_data = node.In(0) == kNone || program_.IsDataValue(node.In(0));
    std::string note =
        on_data ? "the branch follows from data" : "the branch follows from the shape of an input";
    if (RanksDiffer(program_, node)) note += "; its branches give different ranks";
    Alone(id, "branch", std::move(note));
  }

  void Turns(NodeId id) {
    const Node& node = program_.node(id);
    const auto& outputs =
        program_.scopes[static_cast<size_t>(node.bodies.empty() ? 0 : node.bodies[0])].outputs;
    const bool by_count = program_.IsDataValue(node.In(0));
    const bool by_condition =
        !node.bodies.empty() && !outputs.empty() && program_.IsDataValue(outputs[0]);
    const bool starts = program_.IsDataValue(node.In(1));
    if (by_count || by_condition || starts)
      Alone(id, "loop of unknown length",
            by_count ? "the number of turns is computed from data"
                     : "it ends on a condition computed from data");
  }

  const Program& program_;
  Findings& findings_;
  std::map<std::pair<int, ValueId>, std::vector<NodeId>> by_root_;
};

}  // namespace

void FindDataDependent(const Program& program, Findings* findings) {
  DataDependent(program, findings).Run();
}

}  // namespace mk::scan
