// The class behind lower.h, in two files: lower.cc (graphs, nodes, functions) and lower_flow.cc
// (If, Loop, Scan).
#ifndef MERGEKERNEL_VERIFY_SCAN_LOWERING_H_
#define MERGEKERNEL_VERIFY_SCAN_LOWERING_H_

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "verify/scan/fold.h"
#include "verify/scan/lower.h"

namespace mk::scan {

// The names that a graph can see: its own, then those of the graph around it.
struct Names {
  const Names* outer = nullptr;
  std::unordered_map<std::string_view, ValueId> own;
  std::unordered_map<std::string_view, const onnx::TypeProto*> types;  // value_info
  ScopeId scope = 0;
  int32_t path = 0;
  // The opset of the default domain in this body (functions may bring their own).
  int depth = 0;
};

class Lowering {
 public:
  Lowering(const onnx::ModelProto& model, const LowerLimits& limits, Program* program)
      : model_(model), limits_(limits), p_(*program) {}

  absl::Status Run();

 private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  // What is assumed of a value that a loop carries.
  struct State {
    Dep dep = Dep::kConst;
    Inferred shape;
  };
  // How much of the program is there: to undo a body that must be looked at again.
  struct Mark {
    size_t nodes, values, scopes;
  };

  absl::Status Graph(const onnx::GraphProto& graph, Names& names);
  absl::Status Body(const Nodes& nodes, Names& names);
  absl::Status OneNode(const onnx::NodeProto& proto, Names& names);
  absl::Status Plain(const onnx::NodeProto& proto, Op op, Names& names);
  absl::Status Call(const onnx::NodeProto& proto, const onnx::FunctionProto& function,
                    Names& names);
  const onnx::NodeProto* Rewritten(const onnx::NodeProto& proto, const onnx::NodeProto& call,
                                   const onnx::FunctionProto& function);

  absl::Status If(const onnx::NodeProto& proto, Names& names);
  absl::Status Loop(const onnx::NodeProto& proto, Names& names);
  absl::Status Scan(const onnx::NodeProto& proto, Names& names);
  absl::Status Opaque(const onnx::NodeProto& proto, Op op, Names& names);
  // Lowers `graph` as a body with inputs as assumed; leaves the scope's id in `*scope`.
  absl::Status Inner(const onnx::GraphProto& graph, const std::string& label,
                     const std::vector<State>& inputs, Names& outer, ScopeId* scope);

  ValueId NewValue(std::string_view name, const Inferred& shape, Dep dep);
  ValueId Find(const Names& names, std::string_view name);
  ValueId Lookup(const Names& names, std::string_view name) const;
  std::vector<ValueId> Inputs(const onnx::NodeProto& proto, const Names& names);
  NodeId Push(Node node);
  void Bind(Names& names, const std::string& name, ValueId id);
  void AddInitializer(const onnx::TensorProto& tensor, std::string_view name, Names& names);
  void KeepContents(ValueId id, SmallTensor&& tensor);
  Inferred FromType(const onnx::TypeProto& type);
  void Refine(const Names& names, std::string_view name, Inferred* shape);
  Mark Here() const { return {p_.nodes.size(), p_.values.size(), p_.scopes.size()}; }
  void Undo(const Mark& mark);
  State StateOf(ValueId id) const;
  static bool Join(State* into, const State& other);  // whether it changed
  absl::Status CountWork();
  void Warn(const char* code, std::string node, std::string text);
  const onnx::FunctionProto* FindFunction(const onnx::NodeProto& proto) const;

  const onnx::ModelProto& model_;
  const LowerLimits& limits_;
  Program& p_;
  std::map<std::string, const onnx::FunctionProto*> functions_;  // "domain\0name\0overload"
  std::unordered_map<std::string, int64_t> symbols_;
  std::map<std::string, int> warned_;
  int64_t work_ = 0;
  int64_t folded_ = 0;
  int64_t fold_work_ = 0;
};

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_LOWERING_H_
