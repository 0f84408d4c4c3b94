// S5: recurrent state and variable length: the recurrent operators, bodies that carry a state,
// sequences, and in plain graphs
//   unrolled scan   h' = a * h + b, each the direct input of the next, three or more times, a and b
//   not made from h unrolled gates  h' = z * h + ... with z a Sigmoid, the same weights used again
//   at a later step memory chain    an output that is an input with something appended, shifted in
//   or written over log-space scan  Exp of (differences of) a CumSum
//
// Guards: a polynomial (b constant), residual and scaled-residual chains (no product with h), batch
// norms (something between), lengths that are merely symbolic, and CumSum as a position counter are
// none of these.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "verify/scan/findings.h"
#include "verify/scan/walk.h"

namespace mk::scan {
namespace {

constexpr int kScanSteps = 3;  // updates in a row that make an unrolled scan
constexpr size_t kSeen = 512;  // values looked at in one search
constexpr int kGateSteps = 2;  // with shared weights

bool IsSequenceOp(Op op) {
  switch (op) {
    case Op::kSplitToSequence:
    case Op::kConcatFromSequence:
    case Op::kSequenceAt:
    case Op::kSequenceConstruct:
    case Op::kSequenceEmpty:
    case Op::kSequenceErase:
    case Op::kSequenceInsert:
    case Op::kSequenceLength:
    case Op::kSequenceMap:
      return true;
    default:
      return false;
  }
}

// One update h' = a * h + b.
struct Link {
  NodeId node = kNone;
  ValueId state = kNone;  // h
  ValueId gate = kNone;   // a
  ValueId input = kNone;  // b
  int previous = -1;      // index of the link that made h
  int length = 1;
  bool is_gated = false;  // a depends on h
  bool has_next = false;
};

class State {
 public:
  State(const Program& program, Findings* findings) : p_(program), findings_(*findings) {}

  void Run() {
    for (size_t i = 0; i < p_.nodes.size(); ++i) {
      if (!p_.nodes[i].is_const) One(static_cast<NodeId>(i));
    }
    Sequences();
    Chains();
    if (!has_gates_) Repetitions();
    Memories();
  }

 private:
  void One(NodeId id);
  void Recurrent(NodeId id);
  void CarriedLoop(NodeId id);
  void CarriedScan(NodeId id);
  bool IsCarried(ScopeId body, size_t in, size_t out) const;
  void LogSpace(NodeId id);
  void Update(NodeId id);
  void AddLink(NodeId id, ValueId state, ValueId gate, ValueId input);
  int LinkOf(ValueId id) const;
  void Sequences();
  void Chains();
  bool SharesWeights(const std::vector<int>& chain) const;
  std::set<ValueId> WeightsOf(ValueId gate, ValueId stop) const;
  void Repetitions();
  bool FollowsCheaply(ValueId from, ValueId on) const;
  void Memories();
  bool Remembers(ValueId output, ValueId* input, NodeId* node, const char** how) const;
  ValueId InputBehind(ValueId id) const;

  const Program& p_;
  Findings& findings_;
  std::vector<NodeId> sequence_ops_;
  std::vector<Link> links_;
  std::map<ValueId, int> link_by_value_;
  bool has_gates_ = false;
};

void State::One(NodeId id) {
  const Node& node = p_.node(id);
  switch (node.op) {
    case Op::kLSTM:
    case Op::kGRU:
    case Op::kRNN:
      return Recurrent(id);
    case Op::kLinearAttention:
    case Op::kCausalConvWithState:
      findings_.AddSite(
          findings_.Add(kS5, "recurrent operator", "its state goes from step to step"), id);
      return;
    case Op::kReverseSequence:
      if (p_.IsDataValue(node.In(1)))
        findings_.AddSite(findings_.Add(kS5, "variable length", "lengths are an input"), id);
      return;
    case Op::kTensorScatter:
      findings_.AddSite(findings_.Add(kS5, "memory chain", "a cache is written in place"), id);
      return;
    case Op::kAttention:
      if (node.In(4) != kNone || node.In(5) != kNone)
        findings_.AddSite(findings_.Add(kS5, "memory chain", "attention with past keys and values"),
                          id);
      return;
    case Op::kLoop:
      return CarriedLoop(id);
    case Op::kScan:
      return CarriedScan(id);
    case Op::kExp:
      return LogSpace(id);
    case Op::kAdd:
    case Op::kSub:
      return Update(id);
    default:
      if (IsSequenceOp(node.op)) sequence_ops_.push_back(id);
  }
}

void State::Recurrent(NodeId id) {
  const Node& node = p_.node(id);
  const bool varies = node.In(4) != kNone && !p_.value(node.In(4)).IsConst();
  findings_.AddSite(
      findings_.Add(kS5, "recurrent operator",
                    varies ? "with sequence_lens: variable length within a batch" : ""),
      id);
}

// Whether the body's output `out` is made from its input `in` by more than passing it on, and is no
// mere counter.
bool State::IsCarried(ScopeId body, size_t in, size_t out) const {
  const Scope& scope = p_.scopes[static_cast<size_t>(body)];
  if (in >= scope.inputs.size() || out >= scope.outputs.size()) return false;
  const ValueId from = scope.inputs[in], to = scope.outputs[out];
  if (from == kNone || to == kNone || Resolve(p_, to) == from) return false;
  const Value& value = p_.value(from);
  const bool is_counter = !value.IsData() && !p_.value(to).IsData() && !IsReal(value.type);
  if (is_counter) return false;
  return DependsOn(p_, to, from, 200'000, true);
}

void State::CarriedLoop(NodeId id) {
  const Node& node = p_.node(id);
  if (node.bodies.empty()) return;
  for (size_t i = 2; i < node.in.size(); ++i) {
    if (!IsCarried(node.bodies[0], i, i - 1)) continue;
    findings_.AddSite(
        findings_.Add(kS5, "loop with a state", "what it carries is made from what it carried"),
        id);
    return;
  }
}

void State::CarriedScan(NodeId id) {
  const Node& node = p_.node(id);
  const auto scanned =
      static_cast<size_t>(std::max<int64_t>(0, IntAttribute(*node.proto, "num_scan_inputs", 0)));
  for (size_t i = 0; !node.bodies.empty() && i + scanned < node.in.size(); ++i) {
    if (!IsCarried(node.bodies[0], i, i)) continue;
    findings_.AddSite(
        findings_.Add(kS5, "scan with a state", "what it carries is made from what it carried"),
        id);
    return;
  }
}

// exp(cumsum(a)_i - cumsum(a)_j): the parallel form of a selective scan.
void State::LogSpace(NodeId id) {
  ValueId at = p_.node(id).In(0);
  for (int i = 0; i < 12 && at != kNone; ++i) {
    const Node* node = p_.ProducerOf(at);
    if (!node) return;
    if (node->op == Op::kCumSum) {
      if (!p_.IsDataValue(node->In(0)) || !IsReal(p_.value(node->In(0)).type)) return;
      findings_.AddSite(findings_.Add(kS5, "scan in log space", "Exp of a CumSum"), id);
      return;
    }
    const bool passes = IsLayout(node->op) || node->op == Op::kSub || node->op == Op::kWhere ||
                        node->op == Op::kSlice || node->op == Op::kTrilu || node->op == Op::kMul ||
                        node->op == Op::kGather || node->op == Op::kNeg;
    if (!passes) return;
    at = node->op == Op::kWhere ? node->In(p_.IsDataValue(node->In(1)) ? 1 : 2) : node->In(0);
  }
}

int State::LinkOf(ValueId id) const {
  // The state may be laid out anew between two steps, and be cut or stacked no further.
  const auto found = link_by_value_.find(SkipLayout(p_, id));
  return found == link_by_value_.end() ? -1 : found->second;
}

void State::AddLink(NodeId id, ValueId state, ValueId gate, ValueId input) {
  Link link;
  link.node = id;
  link.state = state;
  link.gate = gate;
  link.input = input;
  link.previous = LinkOf(state);
  if (link.previous >= 0) {
    link.is_gated = DependsOn(p_, gate, state, 96, true) || DependsOn(p_, input, state, 96, true);
    link.length = links_[static_cast<size_t>(link.previous)].length + 1;
    links_[static_cast<size_t>(link.previous)].has_next = true;
  }
  link_by_value_[p_.node(id).out[0]] = static_cast<int>(links_.size());
  links_.push_back(link);
}

void State::Update(NodeId id) {
  const Node& node = p_.node(id);
  if (node.in.size() != 2 || node.out.empty() || node.In(0) == kNone || node.In(1) == kNone) return;
  ValueId state = kNone, gate = kNone, input = kNone;
  int longest = -1;
  // h + z * (n - h), the other way to write a gate.
  for (size_t side = 0; side < 2; ++side) {
    const Node* mul = Makes(p_, Resolve(p_, node.In(side)), Op::kMul);
    if (!mul) continue;
    for (size_t k = 0; k < 2; ++k) {
      const ValueId h = mul->In(k), a = mul->In(1 - k), b = node.In(1 - side);
      if (h == kNone || a == kNone || !p_.IsDataValue(b)) continue;
      const int link = LinkOf(h);
      const int length = link < 0 ? 0 : links_[static_cast<size_t>(link)].length;
      if (length > longest) longest = length, state = h, gate = a, input = b;
      const Node* difference = BehindLayout(p_, h, Op::kSub);
      if (difference && LinkOf(b) >= 0 && difference->In(1) != kNone &&
          SkipLayout(p_, difference->In(1)) == SkipLayout(p_, b)) {
        const int gated = links_[static_cast<size_t>(LinkOf(b))].length;
        if (gated > longest) longest = gated, state = b, gate = a, input = h;
      }
    }
  }
  if (state != kNone) AddLink(id, state, gate, input);
}

// The weights that a gate is computed with, up to the state it depends on.
std::set<ValueId> State::WeightsOf(ValueId gate, ValueId stop) const {
  std::set<ValueId> weights, seen = {gate};
  std::vector<ValueId> queue = {gate};
  bool passes_sigmoid = false;
  for (size_t at = 0; at < queue.size() && at < 64; ++at) {
    const Node* node = p_.ProducerOf(queue[at]);
    if (!node || queue[at] == stop) continue;
    passes_sigmoid = passes_sigmoid || node->op == Op::kSigmoid || node->op == Op::kHardSigmoid;
    const bool is_dense = node->op == Op::kConv || node->op == Op::kMatMul || node->op == Op::kGemm;
    for (const ValueId in : node->in) {
      if (seen.size() > kSeen || in == kNone || !seen.insert(in).second) continue;
      if (p_.value(in).IsConst()) {
        if (is_dense && p_.value(in).dims.size() >= 2) weights.insert(in);
      } else {
        queue.push_back(in);
      }
    }
  }
  return passes_sigmoid ? weights : std::set<ValueId>();
}

bool State::SharesWeights(const std::vector<int>& chain) const {
  std::set<ValueId> all;
  for (const int i : chain) {
    const Link& link = links_[static_cast<size_t>(i)];
    for (const ValueId weight : WeightsOf(link.gate, link.state)) {
      if (!all.insert(weight).second) return true;
    }
  }
  return false;
}

void State::Chains() {
  std::vector<bool> told(links_.size(), false);
  for (size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].has_next || links_[i].length < kGateSteps) continue;
    // A link that an earlier end was told with is not told again.
    std::vector<int> chain;
    int gated = 0;
    int at = static_cast<int>(i);
    for (; at >= 0 && !told[static_cast<size_t>(at)];
         at = links_[static_cast<size_t>(at)].previous) {
      told[static_cast<size_t>(at)] = true;
      chain.push_back(at);
      gated += links_[static_cast<size_t>(at)].is_gated;
    }
    if (at >= 0) continue;
    std::reverse(chain.begin(), chain.end());
    const bool is_scan = gated == 0 && static_cast<int>(chain.size()) >= kScanSteps;
    const bool is_gates = gated > 0 && SharesWeights(chain);
    if (!is_scan && !is_gates) continue;
    has_gates_ = has_gates_ || is_gates;
    Structure* structure =
        findings_.Add(kS5, is_scan ? "unrolled scan" : "unrolled gated recurrence",
                      std::to_string(chain.size()) + " updates of one state in a row");
    for (const int at : chain) findings_.AddSite(structure, links_[static_cast<size_t>(at)].node);
  }
}

// Whether `from` is made from `on` with nothing but elementwise and layout ops between.
bool State::FollowsCheaply(ValueId from, ValueId on) const {
  const NodeId floor = p_.value(on).producer;
  std::vector<ValueId> queue = {from};
  std::set<ValueId> seen = {from};
  for (size_t at = 0; at < queue.size() && at < 96; ++at) {
    if (queue[at] == on) return true;
    const NodeId id = p_.value(queue[at]).producer;
    if (id == kNone || id < floor) continue;
    const Op op = p_.node(id).op;
    if (!IsElementwise(op) && !IsLayout(op) && op != Op::kSplit && op != Op::kSlice &&
        op != Op::kConcat)
      continue;
    for (const ValueId in : p_.node(id).in) {
      if (seen.size() <= kSeen && p_.IsDataValue(in) && seen.insert(in).second) queue.push_back(in);
    }
  }
  return false;
}

// The same weights applied again to what they made, three times or more, with cheap nodes between:
// an unrolled RNN, LSTM or GRU whatever its gates. Layers that merely share weights (ALBERT, a
// shared box head) have other products between.
void State::Repetitions() {
  std::set<NodeId> told;
  for (size_t w = 0; w < p_.values.size(); ++w) {
    const Value& weight = p_.values[w];
    if (!weight.IsConst() || weight.dims.size() < 2 || weight.consumers.size() < 3) continue;
    std::vector<NodeId> chain;
    for (const NodeId id : weight.consumers) {
      const Node& node = p_.node(id);
      const bool is_dense = node.op == Op::kMatMul || node.op == Op::kGemm || node.op == Op::kConv;
      if (!is_dense || node.is_const || node.out.empty() || node.In(0) == kNone) continue;
      if (!chain.empty() && !FollowsCheaply(node.In(0), p_.node(chain.back()).out[0])) {
        if (chain.size() >= 3) break;
        chain.clear();
      }
      chain.push_back(id);
    }
    if (chain.size() < 3 || told.count(chain.back())) continue;
    // The other weights of the same cell tell of the same recurrence.
    bool is_told = false;
    for (const NodeId other : told) is_told = is_told || std::abs(other - chain.back()) < 64;
    told.insert(chain.back());
    if (is_told) continue;
    Structure* structure = findings_.Add(
        kS5, "unrolled recurrence", std::to_string(chain.size()) + " turns with the same weights");
    for (const NodeId id : chain) findings_.AddSite(structure, id);
  }
}

// Exporters write a split with constant sizes as a sequence and take its elements at constant
// places: no sequence is left of it when it runs.
void State::Sequences() {
  std::set<NodeId> kept;
  for (const NodeId id : sequence_ops_) {
    const Node& node = p_.node(id);
    bool is_static = false;
    if (node.op == Op::kSplitToSequence || node.op == Op::kSequenceConstruct) {
      is_static =
          node.op == Op::kSequenceConstruct || node.In(1) == kNone || !p_.IsDataValue(node.In(1));
      for (const NodeId user :
           node.out.empty() ? std::vector<NodeId>() : p_.value(node.out[0]).consumers) {
        const Node& next = p_.node(user);
        is_static = is_static &&
                    ((next.op == Op::kSequenceAt && next.In(1) != kNone &&
                      p_.value(next.In(1)).IsConst()) ||
                     (next.op == Op::kConcatFromSequence && node.op == Op::kSequenceConstruct));
      }
    } else if (node.op == Op::kSequenceAt || node.op == Op::kConcatFromSequence) {
      const Node* from = p_.ProducerOf(node.In(0));
      is_static = from &&
                  (from->op == Op::kSplitToSequence || from->op == Op::kSequenceConstruct) &&
                  kept.count(p_.value(node.In(0)).producer) == 0;
    }
    if (!is_static) kept.insert(id);
  }
  if (kept.empty()) return;
  Structure* structure =
      findings_.Add(kS5, "sequences", "lists of tensors whose number or sizes vary");
  for (const NodeId id : kept) findings_.AddSite(structure, id);
}

// The model's input behind layout ops and slices of `id`, or kNone.
ValueId State::InputBehind(ValueId id) const {
  for (int i = 0; i < 8 && id != kNone; ++i) {
    id = SkipLayout(p_, id);
    if (p_.value(id).is_input) return id;
    const Node* node = p_.ProducerOf(id);
    if (!node || (node->op != Op::kSlice && node->op != Op::kGather)) return kNone;
    id = node->In(0);
  }
  return kNone;
}

// Whether `output` is a memory that came in as `*input`, changed by the node `*at`.
bool State::Remembers(ValueId output, ValueId* input, NodeId* at, const char** how) const {
  const ValueId made = SkipLayout(p_, output);
  const Node* node = p_.ProducerOf(made);
  if (!node) return false;
  *at = p_.value(made).producer;
  *input = kNone;
  if (node->op == Op::kConcat) {
    // Memory and new entry; a part of the memory may have been dropped. The entry is computed: two
    // inputs side by side are no memory.
    bool has_entry = false;
    for (const ValueId in : node->in) {
      const ValueId behind = in == kNone ? kNone : InputBehind(in);
      if (behind == kNone) has_entry = has_entry || p_.IsDataValue(in);
      if (behind != kNone && *input == kNone && IsReal(p_.value(behind).type)) *input = behind;
    }
    *how = "an output is an input with something appended";
    return *input != kNone && has_entry;
  }
  if (node->op == Op::kScatterND || node->op == Op::kScatterElements) {
    if (node->In(0) != kNone) *input = InputBehind(node->In(0));
    *how = "an output is an input with a part written over";
    return *input != kNone;
  }
  const auto found = link_by_value_.find(made);
  if (found == link_by_value_.end()) return false;
  const Link* link = &links_[static_cast<size_t>(found->second)];
  while (link->previous >= 0) link = &links_[static_cast<size_t>(link->previous)];
  const ValueId state = SkipLayout(p_, link->state);
  if (!p_.value(state).is_input || !p_.IsDataValue(link->gate)) return false;
  // A state space's step is made from the other inputs alone; a gate may look at the state.
  const bool is_free =
      !DependsOn(p_, link->gate, state, 256, true) && !DependsOn(p_, link->input, state, 256, true);
  if (!is_free && WeightsOf(link->gate, state).empty()) return false;
  *input = state;
  *how = "an output is an input, decayed and added to";
  return true;
}

// A step of a recurrent model that was exported by itself hands its state in and out. Something
// must read the memory besides the node that renews it, or it is only passed along.
void State::Memories() {
  std::map<std::string, std::vector<NodeId>> by_how;
  for (const ValueId output : p_.outputs) {
    ValueId input = kNone;
    NodeId node = kNone;
    const char* how = "";
    if (!Remembers(output, &input, &node, &how)) continue;
    const bool is_read = p_.value(input).consumers.size() > 1 || p_.outputs.size() > 1 ||
                         !p_.value(p_.node(node).out[0]).consumers.empty();
    if (is_read) by_how[how].push_back(node);
  }
  for (const auto& [how, nodes] : by_how) {
    Structure* structure = findings_.Add(kS5, "memory chain", how);
    for (const NodeId node : nodes) findings_.AddSite(structure, node);
  }
}

}  // namespace

void FindState(const Program& program, Findings* findings) { State(program, findings).Run(); }

}  // namespace mk::scan
