#include "verify/scan/lower.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "verify/scan/lowering.h"

namespace mk::scan {
namespace {

bool IsRandom(Op op) {
  switch (op) {
    case Op::kRandomNormal:
    case Op::kRandomNormalLike:
    case Op::kRandomUniform:
    case Op::kRandomUniformLike:
    case Op::kMultinomial:
    case Op::kBernoulli:
      return true;
    default:
      return false;
  }
}

// The greatest of what the inputs depend on; Shape and its kin look at no element.
Dep DepOf(const Program& program, const Node& node) {
  Dep dep = Dep::kConst;
  for (const ValueId id : node.in) {
    if (id != kNone) dep = std::max(dep, program.value(id).dep);
  }
  if (node.op == Op::kShape || node.op == Op::kSize || node.op == Op::kEyeLike)
    return std::min(dep, Dep::kShape);
  if (IsRandom(node.op) || node.op == Op::kForeign || node.op == Op::kUnlisted) return Dep::kData;
  return dep;
}

bool HasReference(const onnx::NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_ref_attr_name()) return true;
    for (const auto& inner : attribute.g().node()) {
      if (HasReference(inner)) return true;
    }
  }
  return false;
}

}  // namespace

absl::Status Lowering::CountWork() {
  if (++work_ > limits_.work || static_cast<int64_t>(p_.nodes.size()) > limits_.nodes)
    return absl::InvalidArgumentError(absl::StrCat("the model has more than ", limits_.nodes,
                                                   " nodes after its functions are expanded"));
  return absl::OkStatus();
}

void Lowering::Warn(const char* code, std::string node, std::string text) {
  if (++warned_[code] > 20) return;
  p_.warnings.push_back({code, std::move(node), std::move(text)});
}

ValueId Lowering::NewValue(std::string_view name, const Inferred& shape, Dep dep) {
  Value value;
  value.name = std::string(name);
  value.type = shape.type;
  // No operator takes more; a file could make every step of inference long.
  value.has_rank = shape.has_rank && shape.dims.size() <= 64;
  if (value.has_rank) value.dims = shape.dims;
  value.dep = dep;
  p_.values.push_back(std::move(value));
  return static_cast<ValueId>(p_.values.size() - 1);
}

ValueId Lowering::Lookup(const Names& names, std::string_view name) const {
  for (const Names* scope = &names; scope != nullptr; scope = scope->outer) {
    if (const auto found = scope->own.find(name); found != scope->own.end()) return found->second;
  }
  return kNone;
}

// Names that nothing defines occur in broken files only; the rest of the graph is still worth
// looking at.
ValueId Lowering::Find(const Names& names, std::string_view name) {
  if (name.empty()) return kNone;
  const ValueId id = Lookup(names, name);
  if (id != kNone) return id;
  Warn("dangling-input", "", absl::StrCat("nothing defines '", Printable(name), "'"));
  return NewValue(name, {}, Dep::kData);
}

std::vector<ValueId> Lowering::Inputs(const onnx::NodeProto& proto, const Names& names) {
  std::vector<ValueId> ids;
  for (const std::string& name : proto.input()) ids.push_back(Find(names, name));
  return ids;
}

void Lowering::Bind(Names& names, const std::string& name, ValueId id) {
  if (!name.empty()) names.own[name] = id;
}

void Lowering::KeepContents(ValueId id, SmallTensor&& tensor) {
  const auto count = static_cast<int64_t>(tensor.elements.size());
  if (count > 1024 && folded_ + count > limits_.folded_elements) return;
  folded_ += count;
  auto& value = p_.values[static_cast<size_t>(id)];
  value.type = tensor.type;
  value.has_rank = true;
  value.dims = tensor.dims;
  value.data = std::make_shared<const SmallTensor>(std::move(tensor));
}

Inferred Lowering::FromType(const onnx::TypeProto& type) {
  Inferred out;
  if (!type.has_tensor_type()) return out;
  out.type = type.tensor_type().elem_type();
  if (!type.tensor_type().has_shape() || type.tensor_type().shape().dim_size() > 64) return out;
  out.has_rank = true;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    Dim size = kUnknownDim;
    if (dim.has_dim_value() && dim.dim_value() >= 0) size = dim.dim_value();
    if (dim.has_dim_param() && !dim.dim_param().empty()) {
      const auto [entry, is_new] =
          symbols_.emplace(dim.dim_param(), static_cast<int64_t>(p_.symbols.size()));
      if (is_new) p_.symbols.push_back(dim.dim_param());
      size = Symbol(entry->second);
    }
    out.dims.push_back(size);
  }
  return out;
}

// What the file says of a value fills in what inference does not know.
void Lowering::Refine(const Names& names, std::string_view name, Inferred* shape) {
  const auto found = names.types.find(name);
  if (found == names.types.end()) return;
  const Inferred stated = FromType(*found->second);
  if (shape->type == kUndefined) shape->type = stated.type;
  if (!stated.has_rank) return;
  if (!shape->has_rank) {
    shape->has_rank = true;
    shape->dims = stated.dims;
  } else if (shape->dims.size() == stated.dims.size()) {
    for (size_t i = 0; i < stated.dims.size(); ++i) {
      if (shape->dims[i] == kUnknownDim) shape->dims[i] = stated.dims[i];
    }
  }
}

NodeId Lowering::Push(Node node) {
  const auto id = static_cast<NodeId>(p_.nodes.size());
  for (const ValueId out : node.out) {
    if (out != kNone) p_.values[static_cast<size_t>(out)].producer = id;
  }
  for (const ScopeId body : node.bodies) p_.scopes[static_cast<size_t>(body)].holder = id;
  p_.nodes.push_back(std::move(node));
  return id;
}

void Lowering::AddInitializer(const onnx::TensorProto& tensor, std::string_view name,
                              Names& names) {
  Inferred shape = {true, {tensor.dims().begin(), tensor.dims().end()}, tensor.data_type()};
  for (Dim& dim : shape.dims) {
    if (dim < 0) dim = kUnknownDim;
  }
  const ValueId id = NewValue(name, shape, Dep::kConst);
  p_.values[static_cast<size_t>(id)].is_initializer = true;
  if (auto contents = FromProto(tensor)) KeepContents(id, *std::move(contents));
  names.own[name] = id;
}

absl::Status Lowering::Graph(const onnx::GraphProto& graph, Names& names) {
  for (const auto& info : graph.value_info()) names.types[info.name()] = &info.type();
  for (const auto& info : graph.output()) names.types.emplace(info.name(), &info.type());
  for (const auto& tensor : graph.initializer()) AddInitializer(tensor, tensor.name(), names);
  for (const auto& sparse : graph.sparse_initializer()) {
    onnx::TensorProto dense;
    *dense.mutable_dims() = sparse.dims();
    dense.set_data_type(sparse.values().data_type());
    dense.set_skipped_bytes(1);
    AddInitializer(dense, sparse.values().name(), names);
  }
  return Body(graph.node(), names);
}

absl::Status Lowering::Body(const Nodes& nodes, Names& names) {
  for (const auto& node : nodes) MK_RETURN_IF_ERROR(OneNode(node, names));
  return absl::OkStatus();
}

absl::Status Lowering::OneNode(const onnx::NodeProto& proto, Names& names) {
  MK_RETURN_IF_ERROR(CountWork());
  if (names.depth > limits_.depth)
    return absl::InvalidArgumentError(
        absl::StrCat("functions and bodies are nested more than ", limits_.depth, " deep"));
  if (const auto* function = FindFunction(proto)) return Call(proto, *function, names);
  const Op op = FindOp(proto.domain(), proto.op_type());
  switch (op) {
    case Op::kIf:
      return If(proto, names);
    case Op::kLoop:
      return Loop(proto, names);
    case Op::kScan:
      return Scan(proto, names);
    default:
      break;
  }
  for (const auto& attribute : proto.attribute()) {
    if (attribute.has_g() || attribute.graphs_size() > 0) return Opaque(proto, op, names);
  }
  return Plain(proto, op, names);
}

absl::Status Lowering::Plain(const onnx::NodeProto& proto, Op op, Names& names) {
  Node node;
  node.op = op;
  node.scope = names.scope;
  node.site_name = names.path;
  node.proto = &proto;
  node.in = Inputs(proto, names);
  node.out.assign(static_cast<size_t>(proto.output_size()), kNone);
  const Dep dep = DepOf(p_, node);
  auto shapes = InferShapes(p_, node);
  std::vector<std::optional<SmallTensor>> folded(node.out.size());
  if (fold_work_ < limits_.fold_work || op == Op::kConstant || op == Op::kShape)
    folded = Fold(p_, node);
  for (const auto& contents : folded)
    fold_work_ += contents ? static_cast<int64_t>(contents->elements.size()) : 0;
  bool is_const = true;
  for (int i = 0; i < proto.output_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (proto.output(i).empty()) continue;
    Refine(names, proto.output(i), &shapes[at]);
    const ValueId id = NewValue(proto.output(i), shapes[at], dep);
    if (folded[at]) {
      if (folded[at]->AllKnown()) p_.values.back().dep = Dep::kConst;
      KeepContents(id, *std::move(folded[at]));
    }
    if (op == Op::kConstant && !p_.value(id).has_rank) {
      if (const auto* tensor = FindAttribute(proto, "value"); tensor && tensor->has_t()) {
        auto& value = p_.values.back();
        value.has_rank = true;
        value.dims.assign(tensor->t().dims().begin(), tensor->t().dims().end());
        value.type = tensor->t().data_type();
      }
    }
    is_const = is_const && p_.value(id).IsConst();
    node.out[at] = id;
    Bind(names, proto.output(i), id);
  }
  node.is_const = is_const && proto.output_size() > 0;
  Push(std::move(node));
  return absl::OkStatus();
}

const onnx::FunctionProto* Lowering::FindFunction(const onnx::NodeProto& proto) const {
  if (functions_.empty()) return nullptr;
  const std::string key =
      absl::StrCat(proto.domain(), "\n", proto.op_type(), "\n", proto.overload());
  const auto found = functions_.find(key);
  return found == functions_.end() ? nullptr : found->second;
}

const onnx::NodeProto* Lowering::Rewritten(const onnx::NodeProto& proto,
                                           const onnx::NodeProto& call,
                                           const onnx::FunctionProto& function) {
  if (!HasReference(proto)) return &proto;
  auto copy = std::make_unique<onnx::NodeProto>(proto);
  copy->clear_attribute();
  for (const auto& attribute : proto.attribute()) {
    if (!attribute.has_ref_attr_name()) {
      auto* kept = copy->add_attribute();
      *kept = attribute;
      if (kept->has_g()) {
        for (auto& inner : *kept->mutable_g()->mutable_node())
          inner = onnx::NodeProto(*Rewritten(inner, call, function));
      }
      continue;
    }
    const auto* given = FindAttribute(call, attribute.ref_attr_name().c_str());
    if (given == nullptr) {
      for (const auto& fallback : function.attribute_proto()) {
        if (fallback.name() == attribute.ref_attr_name()) given = &fallback;
      }
    }
    if (given == nullptr) continue;  // left out: the operator's own default holds
    auto* bound = copy->add_attribute();
    *bound = *given;
    bound->set_name(attribute.name());
  }
  // Copies cost memory, so they count as work by their size.
  work_ += static_cast<int64_t>(copy->ByteSizeLong()) / 64;
  p_.rewritten.push_back(std::move(copy));
  return p_.rewritten.back().get();
}

absl::Status Lowering::Call(const onnx::NodeProto& proto, const onnx::FunctionProto& function,
                            Names& names) {
  Names inner;  // a function sees its own inputs alone
  inner.scope = names.scope;
  inner.depth = names.depth + 1;
  const std::string& around = p_.paths[static_cast<size_t>(names.path)];
  const std::string label = (proto.name().empty() ? proto.op_type() : proto.name()).substr(0, 200);
  if (around.size() < 512 && p_.paths.size() < 100'000) {
    p_.paths.push_back(around.empty() ? label : absl::StrCat(around, "/", label));
    inner.path = static_cast<int32_t>(p_.paths.size() - 1);
  } else {
    inner.path = names.path;
  }
  const std::vector<ValueId> in = Inputs(proto, names);
  for (int i = 0; i < function.input_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (at < in.size() && in[at] != kNone) inner.own[function.input(i)] = in[at];
  }
  for (const auto& info : function.value_info()) inner.types[info.name()] = &info.type();
  for (const auto& node : function.node()) {
    // An optional input that the call leaves out is left out inside too.
    const onnx::NodeProto* bound = Rewritten(node, proto, function);
    bool leaves_out = false;
    for (const std::string& name : bound->input()) {
      leaves_out = leaves_out || (!name.empty() && Lookup(inner, name) == kNone);
    }
    if (leaves_out) {
      auto copy = std::make_unique<onnx::NodeProto>(*bound);
      for (std::string& name : *copy->mutable_input()) {
        if (Lookup(inner, name) == kNone) name.clear();
      }
      p_.rewritten.push_back(std::move(copy));
      bound = p_.rewritten.back().get();
    }
    MK_RETURN_IF_ERROR(OneNode(*bound, inner));
  }
  for (int i = 0; i < proto.output_size() && i < function.output_size(); ++i)
    Bind(names, proto.output(i), Find(inner, function.output(i)));
  return absl::OkStatus();
}

absl::Status Lowering::Run() {
  for (const auto& import : model_.opset_import()) {
    if (IsDefaultDomain(import.domain())) p_.opset = import.version();
  }
  if (p_.opset > kNewestOpset || p_.opset < 0)
    return absl::InvalidArgumentError(absl::StrCat("opset ", p_.opset,
                                                   " of the default domain is not known here; ",
                                                   "the newest known is ", kNewestOpset));
  if (p_.opset == 0) {
    Warn("opset-missing", "", "no opset of the default domain is stated; read as the newest");
    p_.opset = kNewestOpset;
  }
  if (p_.opset < 9)
    Warn("opset-old", "",
         absl::StrCat("opset ", p_.opset, " is older than 9, the oldest the rules are tested on"));
  for (const auto& function : model_.functions()) {
    functions_.emplace(
        absl::StrCat(function.domain(), "\n", function.name(), "\n", function.overload()),
        &function);
  }
  p_.paths = {""};
  p_.scopes.resize(1);
  Names names;
  const onnx::GraphProto& graph = model_.graph();
  std::unordered_map<std::string_view, bool> is_weight;
  for (const auto& tensor : graph.initializer()) is_weight[tensor.name()] = true;
  for (const auto& input : graph.input()) {
    if (is_weight.count(input.name())) continue;  // IR 3 lists weights among the inputs
    const ValueId id = NewValue(input.name(), FromType(input.type()), Dep::kData);
    p_.values.back().is_input = true;
    p_.inputs.push_back(id);
    names.own[input.name()] = id;
  }
  MK_RETURN_IF_ERROR(Graph(graph, names));
  for (const auto& output : graph.output()) {
    const ValueId id = Find(names, output.name());
    if (id == kNone) continue;
    p_.values[static_cast<size_t>(id)].is_output = true;
    p_.outputs.push_back(id);
  }
  for (size_t i = 0; i < p_.nodes.size(); ++i) {
    for (const ValueId id : p_.nodes[i].in) {
      if (id == kNone) continue;
      auto& consumers = p_.values[static_cast<size_t>(id)].consumers;
      if (consumers.empty() || consumers.back() != static_cast<NodeId>(i))
        consumers.push_back(static_cast<NodeId>(i));
    }
  }
  return absl::OkStatus();
}

absl::Status Lower(const onnx::ModelProto& model, const LowerLimits& limits, Program* program) {
  return Lowering(model, limits, program).Run();
}

}  // namespace mk::scan
