// If, Loop, Scan, and any other node that holds graphs.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "verify/scan/lowering.h"

namespace mk::scan {
namespace {

const onnx::GraphProto* GraphAttribute(const onnx::NodeProto& node, const char* name) {
  const auto* attribute = FindAttribute(node, name);
  return attribute && attribute->has_g() ? &attribute->g() : nullptr;
}

// `shape` with an axis in front, or without one.
Inferred Stacked(Inferred shape, Dim length) {
  if (shape.has_rank) shape.dims.insert(shape.dims.begin(), length);
  return shape;
}
Inferred Sliced(Inferred shape, int64_t axis) {
  if (!shape.has_rank) return shape;
  const auto at = Axis(axis, static_cast<int64_t>(shape.dims.size()));
  if (!at) return {false, {}, shape.type};
  shape.dims.erase(shape.dims.begin() + *at);
  return shape;
}

}  // namespace

void Lowering::Undo(const Mark& mark) {
  p_.nodes.resize(mark.nodes);
  p_.values.resize(mark.values);
  p_.scopes.resize(mark.scopes);
}

Lowering::State Lowering::StateOf(ValueId id) const {
  if (id == kNone) return {};
  const Value& value = p_.value(id);
  return {value.dep, {value.has_rank, value.dims, value.type}};
}

bool Lowering::Join(State* into, const State& other) {
  bool changed = false;
  if (other.dep > into->dep) into->dep = other.dep, changed = true;
  if (into->shape.has_rank &&
      (!other.shape.has_rank || other.shape.dims.size() != into->shape.dims.size())) {
    into->shape = {false, {}, into->shape.type};
    changed = true;
  }
  for (size_t i = 0; into->shape.has_rank && i < into->shape.dims.size(); ++i) {
    if (into->shape.dims[i] != other.shape.dims[i] && into->shape.dims[i] != kUnknownDim) {
      into->shape.dims[i] = kUnknownDim;
      changed = true;
    }
  }
  return changed;
}

absl::Status Lowering::Inner(const onnx::GraphProto& graph, const std::string& label,
                             const std::vector<State>& inputs, Names& outer, ScopeId* scope) {
  const auto id = static_cast<ScopeId>(p_.scopes.size());
  Scope made;
  made.parent = outer.scope;
  const std::string& around = p_.scopes[static_cast<size_t>(outer.scope)].path;
  made.path = around.size() > 512
                  ? around
                  : absl::StrCat(around, around.empty() ? "" : "/", label.substr(0, 200));
  p_.scopes.push_back(std::move(made));
  Names names;
  names.outer = &outer;
  names.scope = id;
  names.path = outer.path;
  names.depth = outer.depth + 1;
  std::vector<ValueId> in, out;
  for (int i = 0; i < graph.input_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    State state = at < inputs.size() ? inputs[at] : State{Dep::kData, {}};
    const Inferred stated = FromType(graph.input(i).type());
    if (state.shape.type == kUndefined) state.shape.type = stated.type;
    if (!state.shape.has_rank && stated.has_rank) {
      state.shape.has_rank = true;
      state.shape.dims = stated.dims;
    }
    in.push_back(NewValue(graph.input(i).name(), state.shape, state.dep));
    names.own[graph.input(i).name()] = in.back();
  }
  MK_RETURN_IF_ERROR(Graph(graph, names));
  for (const auto& output : graph.output()) out.push_back(Find(names, output.name()));
  p_.scopes[static_cast<size_t>(id)].inputs = std::move(in);
  p_.scopes[static_cast<size_t>(id)].outputs = std::move(out);
  *scope = id;
  return absl::OkStatus();
}

absl::Status Lowering::If(const onnx::NodeProto& proto, Names& names) {
  const onnx::GraphProto* const branches[] = {GraphAttribute(proto, "then_branch"),
                                              GraphAttribute(proto, "else_branch")};
  if (!branches[0] || !branches[1]) return Opaque(proto, Op::kIf, names);
  Node node;
  node.op = Op::kIf;
  node.scope = names.scope;
  node.site_name = names.path;
  node.proto = &proto;
  node.in = Inputs(proto, names);
  const SmallTensor* condition = Contents(p_, node, 0);
  if (condition && condition->Scalar()) {
    // Decided: the branch's nodes stand in this graph, and nothing else of it.
    const onnx::GraphProto& taken = *branches[*condition->Scalar() != 0 ? 0 : 1];
    Names inner;
    inner.outer = &names;
    inner.scope = names.scope;
    inner.path = names.path;
    inner.depth = names.depth + 1;
    MK_RETURN_IF_ERROR(Graph(taken, inner));
    std::vector<ValueId> out;
    for (const auto& output : taken.output()) out.push_back(Find(inner, output.name()));
    for (int i = 0; i < proto.output_size() && i < taken.output_size(); ++i)
      Bind(names, proto.output(i), out[static_cast<size_t>(i)]);
    return absl::OkStatus();
  }
  const std::string label = proto.name().empty() ? "If" : proto.name();
  for (size_t i = 0; i < 2; ++i) {
    ScopeId scope;
    MK_RETURN_IF_ERROR(
        Inner(*branches[i], label + (i == 0 ? "/then" : "/else"), {}, names, &scope));
    node.bodies.push_back(scope);
  }
  const Dep dep = node.In(0) == kNone ? Dep::kData : p_.value(node.In(0)).dep;
  for (int i = 0; i < proto.output_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    State state = {dep, {}};
    bool first = true;
    for (const ScopeId body : node.bodies) {
      const auto& outputs = p_.scopes[static_cast<size_t>(body)].outputs;
      const State other = at < outputs.size() ? StateOf(outputs[at]) : State{Dep::kData, {}};
      if (first) state.shape = other.shape;
      Join(&state, other);
      first = false;
    }
    const ValueId id = NewValue(proto.output(i), state.shape, state.dep);
    node.out.push_back(id);
    Bind(names, proto.output(i), id);
  }
  Push(std::move(node));
  return absl::OkStatus();
}

absl::Status Lowering::Loop(const onnx::NodeProto& proto, Names& names) {
  const onnx::GraphProto* const body = GraphAttribute(proto, "body");
  if (!body) return Opaque(proto, Op::kLoop, names);
  Node node;
  node.op = Op::kLoop;
  node.scope = names.scope;
  node.site_name = names.path;
  node.proto = &proto;
  node.in = Inputs(proto, names);
  std::vector<State> carried;
  for (size_t i = 2; i < node.in.size(); ++i) {
    carried.push_back(StateOf(node.in[i]));
    // In the body the contents change from turn to turn: no constant.
    carried.back().dep = std::max(carried.back().dep, Dep::kShape);
  }
  State condition = {Dep::kShape, {true, {}, kBool}};
  const Mark mark = Here();
  const std::string label = (proto.name().empty() ? "Loop" : proto.name()) + "/body";
  ScopeId scope = 0;
  for (int turn = 0;; ++turn) {
    std::vector<State> in = {{Dep::kShape, {true, {}, kInt64}}, condition};
    in.insert(in.end(), carried.begin(), carried.end());
    MK_RETURN_IF_ERROR(Inner(*body, label, in, names, &scope));
    const std::vector<ValueId> out = p_.scopes[static_cast<size_t>(scope)].outputs;
    bool changed = false;
    if (!out.empty()) {
      const Dep dep = StateOf(out[0]).dep;
      if (dep > condition.dep) condition.dep = dep, changed = true;
    }
    for (size_t i = 0; i < carried.size(); ++i) {
      const State next = i + 1 < out.size() ? StateOf(out[i + 1]) : State{Dep::kData, {}};
      changed = Join(&carried[i], next) || changed;
    }
    // Each turn raises at least one of few levels; three are enough in all real models.
    if (!changed || turn == 3) break;
    if (turn == 2) {
      for (State& state : carried) state = {Dep::kData, {false, {}, state.shape.type}};
    }
    Undo(mark);
  }
  node.bodies = {scope};
  const std::vector<ValueId> outputs = p_.scopes[static_cast<size_t>(scope)].outputs;
  Dim trips = kUnknownDim;
  if (const SmallTensor* count = Contents(p_, node, 0); count && count->Scalar())
    trips = count->elements[0].AsDim();
  if (condition.dep == Dep::kData) trips = kUnknownDim;
  for (int i = 0; i < proto.output_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    State state = at < carried.size() ? carried[at] : State{Dep::kData, {}};
    if (at >= carried.size() && at + 1 < outputs.size()) {
      state = StateOf(outputs[at + 1]);
      state.shape = Stacked(state.shape, trips);
      state.dep = std::max(state.dep, Dep::kShape);
    }
    Refine(names, proto.output(i), &state.shape);
    const ValueId id = NewValue(proto.output(i), state.shape, state.dep);
    node.out.push_back(id);
    Bind(names, proto.output(i), id);
  }
  Push(std::move(node));
  return absl::OkStatus();
}

absl::Status Lowering::Scan(const onnx::NodeProto& proto, Names& names) {
  const onnx::GraphProto* const body = GraphAttribute(proto, "body");
  const int64_t scanned = IntAttribute(proto, "num_scan_inputs", 0);
  if (!body || scanned < 0 || scanned > proto.input_size() || p_.opset < 9)
    return Opaque(proto, Op::kScan, names);
  Node node;
  node.op = Op::kScan;
  node.scope = names.scope;
  node.site_name = names.path;
  node.proto = &proto;
  node.in = Inputs(proto, names);
  const size_t states = node.in.size() - static_cast<size_t>(scanned);
  const std::vector<int64_t> axes = IntsAttribute(proto, "scan_input_axes");
  std::vector<State> in;
  Dim length = kUnknownDim;
  for (size_t i = 0; i < node.in.size(); ++i) {
    State state = StateOf(node.in[i]);
    if (i >= states) {
      const int64_t axis = i - states < axes.size() ? axes[i - states] : 0;
      const auto at = Axis(axis, static_cast<int64_t>(state.shape.dims.size()));
      if (state.shape.has_rank && at) length = state.shape.dims[static_cast<size_t>(*at)];
      state.shape = Sliced(state.shape, axis);
    }
    state.dep = std::max(state.dep, Dep::kShape);
    in.push_back(std::move(state));
  }
  const Mark mark = Here();
  const std::string label = (proto.name().empty() ? "Scan" : proto.name()) + "/body";
  ScopeId scope = 0;
  for (int turn = 0;; ++turn) {
    MK_RETURN_IF_ERROR(Inner(*body, label, in, names, &scope));
    const std::vector<ValueId> out = p_.scopes[static_cast<size_t>(scope)].outputs;
    bool changed = false;
    for (size_t i = 0; i < states; ++i) {
      const State next = i < out.size() ? StateOf(out[i]) : State{Dep::kData, {}};
      changed = Join(&in[i], next) || changed;
    }
    if (!changed || turn == 3) break;
    if (turn == 2) {
      for (size_t i = 0; i < states; ++i) in[i] = {Dep::kData, {false, {}, in[i].shape.type}};
    }
    Undo(mark);
  }
  node.bodies = {scope};
  const std::vector<ValueId> outputs = p_.scopes[static_cast<size_t>(scope)].outputs;
  for (int i = 0; i < proto.output_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    State state = at < states ? in[at] : State{Dep::kData, {}};
    if (at >= states && at < outputs.size()) {
      state = StateOf(outputs[at]);
      state.shape = Stacked(state.shape, length);
    }
    Refine(names, proto.output(i), &state.shape);
    const ValueId id = NewValue(proto.output(i), state.shape, state.dep);
    node.out.push_back(id);
    Bind(names, proto.output(i), id);
  }
  Push(std::move(node));
  return absl::OkStatus();
}

// A node with graphs whose meaning is not used here (SequenceMap, foreign ones): they are walked,
// with inputs of which nothing is known.
absl::Status Lowering::Opaque(const onnx::NodeProto& proto, Op op, Names& names) {
  Node node;
  node.op = op;
  node.scope = names.scope;
  node.site_name = names.path;
  node.proto = &proto;
  node.in = Inputs(proto, names);
  const std::string label = proto.name().empty() ? proto.op_type() : proto.name();
  for (const auto& attribute : proto.attribute()) {
    ScopeId scope;
    if (attribute.has_g()) {
      MK_RETURN_IF_ERROR(Inner(attribute.g(), label + "/" + attribute.name(), {}, names, &scope));
      node.bodies.push_back(scope);
    }
    for (const auto& graph : attribute.graphs()) {
      MK_RETURN_IF_ERROR(Inner(graph, label + "/" + attribute.name(), {}, names, &scope));
      node.bodies.push_back(scope);
    }
  }
  for (const std::string& name : proto.output()) {
    Inferred shape;
    Refine(names, name, &shape);
    const ValueId id = NewValue(name, shape, Dep::kData);
    node.out.push_back(id);
    Bind(names, name, id);
  }
  Push(std::move(node));
  return absl::OkStatus();
}

}  // namespace mk::scan
