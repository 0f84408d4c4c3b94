// S4: attention of a topology that stock attention kernels do not serve.
//   roll               Concat of the two ends of one tensor in swapped order (shifted windows)
//   window partition   Reshape that splits axes, Transpose that moves one half of each to the
//   batch, then attention relative position  a bias looked up in a table by constant places and
//   added to scores; scores looked up or
//                      shifted (Pad, Reshape, Slice) themselves
//   neighbourhood      overlapping windows (a Gather at repeated constant places, or shifted slices
//   stacked), then attention shared scores      one score matrix that more than one Softmax reads
//
// "Attention" means a Softmax that is reached before the tensor is put back. Guards: patches and
// pixel shuffles move halves to the channels, not the batch; im2col for a convolution reaches no
// Softmax before a weight; a position embedding is added to features, not to scores; a mask on
// scores is no topology.
#include <algorithm>
#include <map>
#include <set>

#include "verify/scan/findings.h"
#include "verify/scan/walk.h"

namespace mk::scan {
namespace {

class Attention {
 public:
  Attention(const Program& program, Findings* findings) : p_(program), findings_(*findings) {}

  void Run() {
    for (size_t i = 0; i < p_.nodes.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      const Node& node = p_.nodes[i];
      if (node.op == Op::kGather || node.op == Op::kGatherElements) {
        // On constants too: the table and the places of a relative position are both weights.
        if (!RelativePosition(id) && !RollByGather(id)) Neighbourhood(id);
        continue;
      }
      if (node.is_const) continue;
      if (node.op == Op::kConcat && !Roll(id)) StackedSlices(id);
      if (node.op == Op::kSlice) RollByDoubling(id);
      if (node.op == Op::kTranspose) Partition(id);
      if (node.op == Op::kMatMul || node.op == Op::kEinsum) {
        SharedScores(id);
        ShiftedScores(id);
      }
    }
    for (const std::vector<NodeId>& chain : rolls_) {
      Structure* structure =
          findings_.Add(kS4, "roll", "both ends of an axis change places: shifted windows");
      for (const NodeId id : chain) findings_.AddSite(structure, id);
    }
  }

 private:
  bool Roll(NodeId id);
  bool RollByGather(NodeId id);
  bool RollByDoubling(NodeId id);
  void AddRoll(NodeId id, ValueId from);
  void StackedSlices(NodeId id);
  void Partition(NodeId id);
  bool RelativePosition(NodeId id);
  void Neighbourhood(NodeId id);
  void SharedScores(NodeId id);
  void ShiftedScores(NodeId id);

  bool IsWeightProduct(const Node& node, ValueId via) const;
  bool ReachesSoftmax(ValueId from, int limit) const;
  bool IsBiasOfScores(ValueId from, bool is_score) const;
  bool IsScores(NodeId id) const;

  const Program& p_;
  Findings& findings_;
  std::vector<std::vector<NodeId>> rolls_;
  std::map<ValueId, size_t> roll_by_value_;
};

// A product of `via` with weights: features are made anew.
bool Attention::IsWeightProduct(const Node& node, ValueId via) const {
  if (node.op == Op::kConv || node.op == Op::kGemm || node.op == Op::kConvTranspose) return true;
  if (node.op != Op::kMatMul && node.op != Op::kEinsum) return false;
  for (const ValueId in : node.in) {
    if (in != kNone && in != via && p_.value(in).IsConst()) return true;
  }
  return false;
}

// Whether scores of `from` follow within one attention: projections, heads and scaling lie between.
bool Attention::ReachesSoftmax(ValueId from, int limit) const {
  return Forward(
      p_, from, limit, [&](NodeId n, ValueId) { return IsSoftmax(p_, n); },
      [&](NodeId n, ValueId) {
        const Op op = p_.node(n).op;
        return IsLayout(op) || IsElementwise(op) || op == Op::kMatMul || op == Op::kGemm ||
               op == Op::kEinsum || op == Op::kSplit || op == Op::kSlice || op == Op::kGather ||
               op == Op::kConcat || op == Op::kPad || op == Op::kLayerNormalization ||
               op == Op::kReduceMean || op == Op::kReduceSum || op == Op::kConv ||
               op == Op::kRMSNormalization || op == Op::kRotaryEmbedding ||
               op == Op::kLpNormalization;
      });
}

// Whether `id` is a product of two things that both come from the input.
bool Attention::IsScores(NodeId id) const {
  const Node& node = p_.node(id);
  if (node.op != Op::kMatMul && node.op != Op::kEinsum) return false;
  return node.in.size() == 2 && p_.IsDataValue(node.In(0)) && p_.IsDataValue(node.In(1));
}

void Attention::AddRoll(NodeId id, ValueId from) {
  const auto before = roll_by_value_.find(SkipLayout(p_, from));
  const size_t chain = before == roll_by_value_.end() ? rolls_.size() : before->second;
  if (chain == rolls_.size()) rolls_.emplace_back();
  rolls_[chain].push_back(id);
  roll_by_value_[p_.node(id).out[0]] = chain;
}

// Concat of tail and head, each a Slice or both of one Split; no layout op between.
bool Attention::Roll(NodeId id) {
  const Node& node = p_.node(id);
  if (node.in.size() != 2 || node.out.empty() || node.In(0) == kNone || node.In(1) == kNone)
    return false;
  const Node *a = p_.ProducerOf(node.In(0)), *b = p_.ProducerOf(node.In(1));
  if (!a || !b || a->op != b->op || (a->op != Op::kSlice && a->op != Op::kSplit)) return false;
  if (a->In(0) != b->In(0) || !p_.IsDataValue(a->In(0))) return false;
  const auto tail = FindPiece(p_, node.In(0)), head = FindPiece(p_, node.In(1));
  if (!tail || !head || tail->axis != head->axis || tail->step != 1 || head->step != 1)
    return false;
  const Value& whole = p_.value(tail->whole);
  const int64_t axis = IntAttribute(*node.proto, "axis", 0);
  const auto at = whole.has_rank ? Axis(axis, static_cast<int64_t>(whole.dims.size())) : axis;
  if (!at || *at != tail->axis || head->begin != 0 || tail->begin == 0) return false;
  // Halves that change places are no shift of a window where they are channels of one token: two
  // equal parts of the last axis are a rotation's or a gate's.
  const bool is_last = whole.has_rank && tail->axis + 1 == static_cast<int64_t>(whole.dims.size());
  if (is_last && tail->length == head->length) return false;
  // The tail goes on to the end, and the head stops where the tail began.
  bool meets = tail->to_end && head->length == tail->begin;
  if (!meets && a->op == Op::kSlice) {
    // With a symbolic axis: x[-s:] then x[:-s].
    const auto x = ReadSlice(p_, *a), y = ReadSlice(p_, *b);
    meets = x && y && x->begins.size() == 1 && y->ends.size() == 1 && x->ends[0] > INT32_MAX &&
            x->begins[0] == y->ends[0];
  }
  if (meets) AddRoll(id, tail->whole);
  return meets;
}

// A Gather whose constant places are those of the axis, begun elsewhere.
bool Attention::RollByGather(NodeId id) {
  const Node& node = p_.node(id);
  const SmallTensor* index = Contents(p_, node, 1);
  if (node.op != Op::kGather || node.is_const || !index || index->rank() != 1 ||
      index->dims[0] < 4 || node.out.empty())
    return false;
  const ValueId data = node.In(0);
  if (!p_.IsDataValue(data) || !p_.value(data).has_rank) return false;
  const Dims& dims = p_.value(data).dims;
  const auto axis = Axis(IntAttribute(*node.proto, "axis", 0), static_cast<int64_t>(dims.size()));
  const auto places = index->Integers();
  if (!axis || !places || dims[static_cast<size_t>(*axis)] != index->dims[0]) return false;
  const int64_t size = index->dims[0], begin = places->front();
  if (begin <= 0 || begin >= size) return false;
  for (int64_t i = 0; i < size; ++i) {
    if ((*places)[static_cast<size_t>(i)] != (begin + i) % size) return false;
  }
  AddRoll(id, data);
  return true;
}

// A Slice as long as x out of x, x.
bool Attention::RollByDoubling(NodeId id) {
  const Node& node = p_.node(id);
  const auto piece = node.out.empty() ? std::nullopt : FindPiece(p_, node.out[0]);
  if (!piece || piece->node != id || piece->step != 1 || piece->begin <= 0) return false;
  const Node* twice = Makes(p_, piece->whole, Op::kConcat);
  if (!twice || twice->in.size() != 2 || twice->In(0) != twice->In(1) ||
      !p_.IsDataValue(twice->In(0)))
    return false;
  const Value& once = p_.value(twice->In(0));
  const auto axis =
      Axis(IntAttribute(*twice->proto, "axis", 0), static_cast<int64_t>(once.dims.size()));
  if (!once.has_rank || !axis || *axis != piece->axis ||
      once.dims[static_cast<size_t>(*axis)] != piece->length)
    return false;
  if (piece->begin >= piece->length) return false;
  AddRoll(id, twice->In(0));
  return true;
}

// Many slices of one tensor, equally long and one place apart, stacked: the window of a
// neighbourhood.
void Attention::StackedSlices(NodeId id) {
  const Node& node = p_.node(id);
  if (node.in.size() < 4 || node.out.empty()) return;
  std::set<std::pair<NodeId, int64_t>> places;
  ValueId whole = kNone;
  int64_t length = -2, axis = 0;
  bool overlaps = false;
  std::set<int64_t> begins;
  for (const ValueId in : node.in) {
    auto piece = in == kNone ? std::nullopt : FindPiece(p_, in);
    if (!piece || piece->step != 1) return;
    // Windows in the plane are cut along one axis and then the other; the deeper cut tells the
    // tensor.
    const auto outer = FindPiece(p_, piece->whole);
    if (outer && outer->step == 1 && outer->length == piece->length) piece->whole = outer->whole;
    if (whole == kNone) whole = piece->whole, length = piece->length, axis = piece->axis;
    if (piece->whole != whole || piece->length != length || piece->axis != axis || length < 2)
      return;
    begins.insert(piece->begin);
  }
  int64_t last = INT64_MIN;
  for (const int64_t begin : begins) {
    overlaps = overlaps || (last != INT64_MIN && begin - last < length);
    last = begin;
  }
  if (!overlaps || begins.size() < 2 || !p_.IsDataValue(whole) || !ReachesSoftmax(node.out[0], 96))
    return;
  findings_.AddSite(findings_.Add(kS4, "neighbourhood attention",
                                  "overlapping windows, as shifted slices side by side"),
                    id);
}

// One axis of a Reshape's output, as a part of an axis of its input: which one, and whether the
// outer or inner part.
struct Part {
  int source = -1;
  bool is_split = false;
  bool is_inner = false;
};

// How each axis of `to` comes from `from`: equal axes match, and an axis that was split in two is
// recognised by its product. Empty where it is anything else.
std::vector<Part> MatchSplit(const Dims& from, const Dims& to) {
  std::vector<Part> parts;
  size_t t = 0;
  for (size_t f = 0; f < from.size(); ++f) {
    if (t >= to.size()) return {};
    const bool last = f + 1 == from.size();
    const size_t left_to = to.size() - t, left_from = from.size() - f;
    if (from[f] == to[t] && (from[f] != kUnknownDim || left_to == left_from)) {
      // 1 x anything can be split too, but only where axes are left over.
      parts.push_back({static_cast<int>(f), false, false});
      ++t;
      continue;
    }
    if (left_to < left_from + 1) {
      // The rest matches one to one, known or not.
      if (left_to != left_from || (from[f] >= 0 && to[t] >= 0)) return {};
      parts.push_back({static_cast<int>(f), false, false});
      ++t;
      continue;
    }
    const Dim a = to[t], b = to[t + 1];
    const bool fits = from[f] < 0 || a < 0 || b < 0
                          ? (a > 0 || b > 0)
                          : a > 0 && b > 0 && from[f] % a == 0 && from[f] / a == b;
    if (!fits) return {};
    parts.push_back({static_cast<int>(f), true, false});
    parts.push_back({static_cast<int>(f), true, true});
    t += 2;
    if (last && t != to.size()) return {};
  }
  return t == to.size() ? parts : std::vector<Part>();
}

void Attention::Partition(NodeId id) {
  const Node& node = p_.node(id);
  const Node* split = Makes(p_, node.In(0), Op::kReshape);
  const std::vector<int64_t> order = IntsAttribute(*node.proto, "perm");
  if (!split || split->In(0) == kNone || node.out.empty() || order.size() < 5) return;
  const Value &before = p_.value(split->In(0)), &between = p_.value(node.In(0));
  if (!before.has_rank || !between.has_rank || between.dims.size() != order.size()) return;
  const std::vector<Part> parts = MatchSplit(before.dims, between.dims);
  if (parts.size() != order.size()) return;
  // What is merged with what: the Reshape behind tells.
  Dims merged;
  for (const NodeId user : p_.value(node.out[0]).consumers) {
    const Node& next = p_.node(user);
    if (next.op == Op::kReshape && !next.out.empty() && p_.value(next.out[0]).has_rank)
      merged = p_.value(next.out[0]).dims;
  }
  if (merged.empty()) return;
  // The halves that stand in front, next to the batch, before anything that was not split but the
  // batch itself.
  std::set<int> in_batch, in_tokens;
  size_t at = 0;
  std::vector<Part> moved;
  for (const int64_t axis : order) moved.push_back(parts[static_cast<size_t>(axis)]);
  while (at < moved.size() && !moved[at].is_split) ++at;
  if (at > 2) return;               // behind batch and at most one more axis (heads, frames)
  bool halves[2] = {false, false};  // outer, inner
  for (; at < moved.size() && moved[at].is_split; ++at) {
    // Once a source comes the second time, its other half begins: the tokens of a window.
    if (in_batch.count(moved[at].source)) break;
    in_batch.insert(moved[at].source);
    halves[moved[at].is_inner ? 1 : 0] = true;
  }
  for (; at < moved.size() && moved[at].is_split; ++at) in_tokens.insert(moved[at].source);
  // Both halves of the same axes, one kind of half in the batch, and the channels untouched behind.
  if (in_batch.empty() || in_batch != in_tokens || (halves[0] && halves[1])) return;
  const Dim channels = between.dims[static_cast<size_t>(order.back())];
  const bool keeps_channels =
      !moved.back().is_split && (merged.back() == channels || merged.back() < 0 || channels < 0);
  if (!keeps_channels) return;
  // The batch of windows really is the batch: the axis merged in front is not the token axis of a
  // patch embedding.
  Dim in_window = 1;
  for (size_t i = 0; i < moved.size(); ++i) {
    if (moved[i].is_split && moved[i].is_inner != halves[1])
      in_window *= between.dims[static_cast<size_t>(order[i])];
  }
  if (merged.size() < 3 || !ReachesSoftmax(node.out[0], 160)) return;
  std::string note = in_window > 0 ? "windows of " + std::to_string(in_window) + " tokens" : "";
  findings_.AddSite(
      findings_.Add(kS4, halves[1] ? "grid partition" : "window partition", std::move(note)), id);
}

// Whether `from` is added to scores on the way to a Softmax. `is_score`: it is itself a part of
// scores.
bool Attention::IsBiasOfScores(ValueId from, bool is_score) const {
  bool is_bias = false;
  Forward(
      p_, from, 64,
      [&](NodeId n, ValueId) {
        is_bias = is_bias || IsSoftmax(p_, n);
        return is_bias;
      },
      [&](NodeId n, ValueId via) {
        const Node& node = p_.node(n);
        if (IsLayout(node.op) || node.op == Op::kSlice || node.op == Op::kConcat ||
            node.op == Op::kPad || node.op == Op::kTile)
          return true;
        // The bias may be a product with the queries (decomposed relative positions), never with
        // weights.
        if (node.op == Op::kMatMul || node.op == Op::kEinsum)
          return !is_score && !IsWeightProduct(node, via);
        if (node.op == Op::kAdd || node.op == Op::kSum) return true;
        return node.op == Op::kMul || node.op == Op::kDiv || node.op == Op::kWhere ||
               node.op == Op::kSigmoid || node.op == Op::kSub || node.op == Op::kClip ||
               node.op == Op::kNeg;
      });
  return is_bias;
}

bool Attention::RelativePosition(NodeId id) {
  const Node& node = p_.node(id);
  if (node.In(0) == kNone || node.In(1) == kNone || node.out.empty() || node.out[0] == kNone)
    return false;
  const Value &data = p_.value(node.In(0)), &index = p_.value(node.In(1));
  if (index.IsData()) return false;
  const bool is_table = data.IsConst() && IsReal(data.type) && node.op == Op::kGather;
  const bool is_scores = !is_table && node.op == Op::kGatherElements && data.IsData();
  if (!is_table && !is_scores) return false;
  // Several places: one row is a slice.
  int64_t places = 1;
  for (const Dim dim : index.dims)
    places = dim < 0 || places < 0
                 ? -1
                 : std::min<int64_t>(places * std::min<Dim>(dim, 1 << 20), 1 << 20);
  if (!index.has_rank || (places >= 0 && places < 4)) return false;
  if (!IsBiasOfScores(node.out[0], is_scores)) return false;
  findings_.AddSite(findings_.Add(kS4, "relative position",
                                  is_table ? "a bias looked up by relative place is added to scores"
                                           : "scores are looked up by relative place"),
                    id);
  return true;
}

// A Gather at constant places of which some occur several times: windows that overlap.
void Attention::Neighbourhood(NodeId id) {
  const Node& node = p_.node(id);
  if (node.op != Op::kGather || node.is_const || !p_.IsDataValue(node.In(0)) || node.In(1) == kNone)
    return;
  const Value& index = p_.value(node.In(1));
  if (index.IsData() || !index.has_rank || index.dims.size() < 2 || node.out.empty()) return;
  if (index.data) {
    const auto list = index.data->Integers();
    if (!list) return;
    const std::set<int64_t> distinct(list->begin(), list->end());
    if (distinct.size() == list->size() || distinct.size() < 2) return;
  } else if (!std::all_of(index.dims.begin(), index.dims.end(), [](Dim dim) { return dim != 1; })) {
    return;
  }
  if (!ReachesSoftmax(node.out[0], 96)) return;
  // The second axis of the same window is the same structure.
  const Node* first = p_.ProducerOf(SkipLayout(p_, node.In(0)));
  if (first && first->op == Op::kGather && first->In(1) != kNone &&
      !p_.value(first->In(1)).IsData() && p_.value(first->In(1)).dims.size() >= 2) {
    return;
  }
  findings_.AddSite(findings_.Add(kS4, "neighbourhood attention",
                                  "overlapping windows, gathered at constant places"),
                    id);
}

void Attention::SharedScores(NodeId id) {
  if (!IsScores(id) || p_.node(id).out.empty()) return;
  std::vector<NodeId> softmaxes;
  Forward(
      p_, p_.node(id).out[0], 64,
      [&](NodeId n, ValueId) {
        if (IsSoftmax(p_, n)) softmaxes.push_back(n);
        return false;
      },
      [&](NodeId n, ValueId) {
        const Op op = p_.node(n).op;
        return !IsSoftmax(p_, n) &&
               (IsLayout(op) || IsElementwise(op) || op == Op::kReduceMax || op == Op::kSlice);
      });
  if (softmaxes.size() < 2) return;
  Structure* structure = findings_.Add(
      kS4, "shared scores",
      "one score matrix is read by " + std::to_string(softmaxes.size()) + " Softmax nodes");
  findings_.AddSite(structure, id);
  for (const NodeId softmax : softmaxes) findings_.AddSite(structure, softmax);
}

// The shift of relative scores: Pad, Reshape, Slice, Reshape between the product and the Softmax.
void Attention::ShiftedScores(NodeId id) {
  if (!IsScores(id) && p_.node(id).op != Op::kMatMul) return;
  if (p_.node(id).out.empty()) return;
  ValueId at = p_.node(id).out[0];
  int step = 0;  // Pad or Concat with zeros, Reshape, Slice
  for (int i = 0; i < 12; ++i) {
    const auto& users = p_.value(at).consumers;
    NodeId next = kNone;
    for (size_t u = 0; u < users.size() && u < 16 && next == kNone; ++u) {
      if (p_.node(users[u]).op != Op::kShape) next = users[u];
    }
    if (next == kNone || p_.node(next).out.empty()) return;
    const Node& node = p_.node(next);
    if (step == 0 && (node.op == Op::kPad || (node.op == Op::kConcat && node.in.size() == 2))) {
      step = 1;
    } else if (step == 1 && node.op == Op::kReshape) {
      step = 2;
    } else if (step == 2 && node.op == Op::kSlice) {
      step = 3;
    } else if (!IsLayout(node.op) && node.op != Op::kSlice) {
      break;
    }
    at = node.out[0];
  }
  if (step != 3 || !IsBiasOfScores(at, true)) return;
  findings_.AddSite(
      findings_.Add(kS4, "relative position", "scores are shifted by Pad, Reshape and Slice"), id);
}

}  // namespace

void FindAttention(const Program& program, Findings* findings) {
  Attention(program, findings).Run();
}

}  // namespace mk::scan
