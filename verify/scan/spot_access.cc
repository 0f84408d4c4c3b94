// S2: non-affine memory access: where an element is read from or written to follows from data.
//
// Guards: an index that is constant, or follows from shapes alone, is affine; rows of a constant
// table (an embedding) and whole rows picked by what a selection (TopK, NonMaxSuppression, ArgMax,
// ...) returned through a plain Gather are block copies; one row by a scalar index is a slice.
#include <algorithm>
#include <map>
#include <numeric>

#include "verify/scan/findings.h"
#include "verify/scan/walk.h"

namespace mk::scan {
namespace {

constexpr int kJoinDepth = 8;  // cheap nodes between two samples and the sum that joins them

class NonAffine {
 public:
  NonAffine(const Program& program, Findings* findings) : p_(program), findings_(*findings) {}

  void Run() {
    for (size_t i = 0; i < p_.nodes.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      const char* kind = p_.nodes[i].is_const ? nullptr : Kind(id);
      if (kind != nullptr) {
        Site(id, kind);
      } else {
        Carry(id);
      }
    }
    Emit();
  }

 private:
  struct Group {
    std::vector<NodeId> sites;
    const char* kind = "";
  };
  struct Trace {
    int group = 0;
    int depth = 0;
  };

  const char* Kind(NodeId id) const;
  bool IsPickOfRows(ValueId index) const;
  bool IsBestRow(ValueId index) const;
  bool IsOneRow(ValueId index) const;

  int Top(int group) {
    while (parents_[static_cast<size_t>(group)] != group) {
      int& parent = parents_[static_cast<size_t>(group)];
      parent = parents_[static_cast<size_t>(parent)];
      group = parent;
    }
    return group;
  }
  void Join(int a, int b) {
    a = Top(a), b = Top(b);
    if (a != b) parents_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }
  void Site(NodeId id, const char* kind);
  void Carry(NodeId id);
  void Emit();

  const Program& p_;
  Findings& findings_;
  std::vector<Group> groups_;
  std::vector<int> parents_;
  std::map<ValueId, Trace> traces_;  // values that a site's result reached through cheap nodes
  std::map<ValueId, int> by_index_;  // the same index used twice is one structure
};

bool NonAffine::IsOneRow(ValueId index) const {
  const Value& value = p_.value(index);
  return value.has_rank &&
         std::all_of(value.dims.begin(), value.dims.end(), [](Dim dim) { return dim == 1; });
}

bool NonAffine::IsPickOfRows(ValueId index) const {
  for (int i = 0; i < 16 && index != kNone; ++i) {
    const Node* node = p_.ProducerOf(index);
    if (!node) return false;
    switch (node->op) {
      case Op::kNonMaxSuppression:
      case Op::kTopK:
      case Op::kArgMax:
      case Op::kArgMin:
      case Op::kNonZero:
      case Op::kUnique:
        return true;
      case Op::kSlice:
      case Op::kSplit:
      case Op::kGather:
        index = node->In(0);
        break;
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul: {
        // A row of a flattened batch: the choice plus a constant offset.
        const bool first = p_.IsDataValue(node->In(0)), second = p_.IsDataValue(node->In(1));
        if (first == second) return false;
        index = node->In(first ? 0 : 1);
        break;
      }
      default:
        if (!IsLayout(node->op)) return false;
        index = node->In(0);
    }
  }
  return false;
}

// x[range, argmax(...)]: one row for each batch, as text encoders pool.
bool NonAffine::IsBestRow(ValueId index) const {
  if (index == kNone) return false;
  const Node* parts = BehindLayout(p_, index, Op::kConcat);
  if (!parts) return false;
  bool found = false;
  for (const ValueId part : parts->in) {
    if (!p_.IsDataValue(part)) continue;
    const Node* best = p_.ProducerOf(SkipLayout(p_, part));
    if (!best || (best->op != Op::kArgMax && best->op != Op::kArgMin)) return false;
    found = true;
  }
  return found;
}

const char* NonAffine::Kind(NodeId id) const {
  const Node& node = p_.node(id);
  switch (node.op) {
    case Op::kGridSample:
      return "sampling at computed places";
    case Op::kDeformConv:
      return "deformable convolution";
    case Op::kRoiAlign:
    case Op::kMaxRoiPool:
      return "pooling of computed regions";
    case Op::kMaxUnpool:
      return "unpooling to computed places";
    case Op::kGather:
      if (!p_.IsDataValue(node.In(1)) || node.In(0) == kNone || p_.value(node.In(0)).IsConst())
        return nullptr;
      return IsPickOfRows(node.In(1)) || IsOneRow(node.In(1)) ? nullptr
                                                              : "gather at computed indices";
    case Op::kGatherND:
      if (IsBestRow(node.In(1))) return nullptr;
      [[fallthrough]];
    case Op::kGatherElements:
      return p_.IsDataValue(node.In(1)) ? "gather at computed indices" : nullptr;
    case Op::kScatter:
    case Op::kScatterElements:
    case Op::kScatterND:
      return p_.IsDataValue(node.In(1)) ? "scatter to computed indices" : nullptr;
    default:
      return nullptr;
  }
}

void NonAffine::Site(NodeId id, const char* kind) {
  const auto fresh = static_cast<int>(groups_.size());
  groups_.push_back({{id}, kind});
  parents_.push_back(fresh);
  const Node& node = p_.node(id);
  const ValueId index = node.op == Op::kGridSample ? kNone : node.In(1);
  if (index != kNone && node.op != Op::kRoiAlign && node.op != Op::kDeformConv) {
    const auto [found, is_new] = by_index_.emplace(SkipLayout(p_, index), fresh);
    if (!is_new) Join(found->second, fresh);
  }
  if (!node.out.empty() && node.out[0] != kNone) traces_[node.out[0]] = {fresh, 0};
}

// Samples that meet in a Concat or a sum after a few cheap nodes belong together: the levels of
// deformable attention, the four corners of a bilinear interpolation.
void NonAffine::Carry(NodeId id) {
  const Node& node = p_.node(id);
  const bool joins = node.op == Op::kConcat || IsElementwise(node.op);
  if (!joins && !IsLayout(node.op) && node.op != Op::kSlice && node.op != Op::kSplit) return;
  int group = -1, depth = 0;
  for (const ValueId in : node.in) {
    const auto found = in == kNone ? traces_.end() : traces_.find(in);
    if (found == traces_.end()) continue;
    if (group >= 0) Join(group, found->second.group);
    group = found->second.group;
    depth = std::max(depth, found->second.depth);
  }
  if (group < 0 || depth >= kJoinDepth) return;
  for (const ValueId out : node.out) {
    if (out != kNone) traces_[out] = {group, depth + 1};
  }
}

void NonAffine::Emit() {
  std::map<int, std::vector<int>> members;
  for (size_t i = 0; i < groups_.size(); ++i)
    members[Top(static_cast<int>(i))].push_back(static_cast<int>(i));
  for (const auto& [top, list] : members) {
    size_t samples = 0;
    for (const int i : list)
      samples += p_.node(groups_[static_cast<size_t>(i)].sites[0]).op == Op::kGridSample;
    const bool is_deformable = samples >= 2 && samples == list.size();
    Structure* structure = findings_.Add(
        kS2,
        is_deformable ? "sampling at computed places, several joined"
                      : groups_[static_cast<size_t>(top)].kind,
        is_deformable ? "as in multi-scale deformable attention or a pyramid look-up" : "");
    for (const int i : list) findings_.AddSite(structure, groups_[static_cast<size_t>(i)].sites[0]);
  }
}

}  // namespace

void FindNonAffine(const Program& program, Findings* findings) {
  NonAffine(program, findings).Run();
}

}  // namespace mk::scan
