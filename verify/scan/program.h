// The model as the rules see it: one list of nodes in an order in which every value is made before
// it is used. Local functions are expanded, branches of an If whose condition is constant are taken
// or dropped, constants are folded. Bodies of Loop, Scan and of a real If stand in the same list,
// right before the node that holds them.
#ifndef MERGEKERNEL_VERIFY_SCAN_PROGRAM_H_
#define MERGEKERNEL_VERIFY_SCAN_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "verify/scan/onnx.pb.h"
#include "verify/scan/ops.h"
#include "verify/scan/tensor.h"

namespace mk::scan {

using ValueId = int32_t;  // kNone where an optional input or output is left out
using NodeId = int32_t;
using ScopeId = int32_t;
constexpr int32_t kNone = -1;

// What a value can depend on. Ordered: a node's outputs get the greatest of its inputs'.
enum class Dep : uint8_t {
  kConst,  // on nothing: weights, and what is computed from them
  kShape,  // on the shapes of the inputs alone
  kData,   // on what the inputs hold
};

struct Value {
  std::string name;
  int32_t type = kUndefined;
  bool has_rank = false;
  bool is_input = false;        // of the whole model
  bool is_initializer = false;  // weights
  bool is_output = false;       // of the whole model
  Dep dep = Dep::kData;
  Dims dims;                                // meaningful when has_rank
  std::shared_ptr<const SmallTensor> data;  // contents, where small and known (at least in part)
  NodeId producer = kNone;
  std::vector<NodeId> consumers;

  bool IsConst() const { return dep == Dep::kConst; }
  bool IsData() const { return dep == Dep::kData; }
};

// A graph of the model: the main one, a body or a branch.
struct Scope {
  std::string path;       // "" for the main graph; "If_3/then", "block/Loop_1/body"
  NodeId holder = kNone;  // the node whose attribute it is, set when that node is reached
  ScopeId parent = kNone;
  std::vector<ValueId> inputs;  // of the body
  std::vector<ValueId> outputs;
};

struct Node {
  Op op = Op::kForeign;
  bool is_const = false;  // all of its outputs are constants: nothing of it runs
  ScopeId scope = 0;
  const onnx::NodeProto* proto = nullptr;
  std::vector<ValueId> in;
  std::vector<ValueId> out;
  std::vector<ScopeId> bodies;  // in the order of the attributes that hold them
  int32_t site_name = 0;        // index into Program::paths: functions this node was expanded from

  ValueId In(size_t i) const { return i < in.size() ? in[i] : kNone; }
};

struct Warning {
  std::string code;  // "opset-old", "dangling-input", "topk-k-zero", ...
  std::string node;
  std::string text;
};

struct Program {
  int64_t opset = 0;  // of the default domain
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<Scope> scopes;
  std::vector<std::string> paths;    // paths[0] is ""
  std::vector<std::string> symbols;  // names of symbolic dimensions
  std::vector<ValueId> inputs;       // without those that are initialisers
  std::vector<ValueId> outputs;
  std::vector<Warning> warnings;
  // Copies of nodes whose attributes came from the call of a function.
  std::vector<std::unique_ptr<onnx::NodeProto>> rewritten;

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  const Node& node(NodeId id) const { return nodes[static_cast<size_t>(id)]; }
  // The node that makes `id`; null for inputs and weights.
  const Node* ProducerOf(ValueId id) const {
    return id == kNone || value(id).producer == kNone ? nullptr : &node(value(id).producer);
  }
  bool IsDataValue(ValueId id) const { return id != kNone && value(id).IsData(); }
};

// Attributes of a node, with the default that the specification names.
const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, const char* name);
int64_t IntAttribute(const onnx::NodeProto& node, const char* name, int64_t fallback);
double FloatAttribute(const onnx::NodeProto& node, const char* name, double fallback);
std::string TextAttribute(const onnx::NodeProto& node, const char* name, const char* fallback);
std::vector<int64_t> IntsAttribute(const onnx::NodeProto& node, const char* name);

// "[batch, 3, 224, ?]"; "?" where the rank is not known.
std::string ShapeText(const Program& program, ValueId id);
// How a person finds a node again: its name, else its first output's.
std::string NodeName(const Program& program, const Node& node);
// The scope of a node: functions and bodies around it.
std::string ScopeName(const Program& program, const Node& node);

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_PROGRAM_H_
