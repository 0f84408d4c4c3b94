#include "verify/scan/walk.h"

#include <algorithm>
#include <unordered_set>

namespace mk::scan {
namespace {

constexpr int kChain = 32;  // layout ops in a row that are looked through

int64_t RankOf(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  return value.has_rank ? static_cast<int64_t>(value.dims.size()) : -1;
}

std::optional<Piece> FromSlice(const Program& program, const Node& node, NodeId id) {
  const auto spec = ReadSlice(program, node);
  const ValueId whole = node.In(0);
  if (!spec || whole == kNone) return std::nullopt;
  const int64_t rank = RankOf(program, whole);
  std::optional<Piece> piece;
  for (size_t i = 0; i < spec->axes.size(); ++i) {
    const bool is_all = spec->begins[i] == 0 && spec->ends[i] > INT32_MAX && spec->steps[i] == 1;
    if (is_all) continue;
    if (piece) return std::nullopt;  // cut along two axes
    piece.emplace();
    piece->whole = whole;
    piece->node = id;
    piece->axis = spec->axes[i] < 0 && rank >= 0 ? spec->axes[i] + rank : spec->axes[i];
    piece->step = spec->steps[i];
    int64_t begin = spec->begins[i], end = spec->ends[i];
    piece->to_end = end > INT32_MAX;
    const Dims& dims = program.value(whole).dims;
    if (rank > 0 && piece->axis >= 0 && piece->axis < rank &&
        dims[static_cast<size_t>(piece->axis)] >= 0) {
      const int64_t size = dims[static_cast<size_t>(piece->axis)];
      ClampSlice(size, piece->step, &begin, &end);
      piece->length = SliceLength(begin, end, piece->step);
      piece->to_end = piece->step > 0 && end == size;
      piece->begin = begin;
    } else {
      piece->begin = begin;
      piece->length =
          begin >= 0 && end >= 0 && end <= INT32_MAX && piece->step == 1 ? end - begin : -1;
    }
  }
  return piece;
}

std::optional<Piece> FromSplit(const Program& program, const Node& node, NodeId id, ValueId out) {
  const auto sizes = SplitSizes(program, node);
  const ValueId whole = node.In(0);
  if (whole == kNone) return std::nullopt;
  Piece piece;
  piece.whole = whole;
  piece.node = id;
  piece.axis = IntAttribute(*node.proto, "axis", 0);
  if (piece.axis < 0 && RankOf(program, whole) >= 0) piece.axis += RankOf(program, whole);
  for (size_t i = 0; i < node.out.size(); ++i) {
    if (node.out[i] == out) {
      piece.length = sizes && i < sizes->size() ? (*sizes)[i] : -1;
      piece.to_end = i + 1 == node.out.size();
      return piece;
    }
    piece.begin += sizes && i < sizes->size() ? (*sizes)[i] : 1;
  }
  return std::nullopt;
}

std::optional<Piece> FromGather(const Program& program, const Node& node, NodeId id) {
  const SmallTensor* index = Contents(program, node, 1);
  const auto at = index ? index->Scalar() : std::nullopt;
  const ValueId whole = node.In(0);
  if (!at || whole == kNone) return std::nullopt;
  Piece piece;
  piece.whole = whole;
  piece.node = id;
  const int64_t rank = RankOf(program, whole);
  piece.axis = IntAttribute(*node.proto, "axis", 0);
  if (piece.axis < 0 && rank >= 0) piece.axis += rank;
  piece.begin = static_cast<int64_t>(std::clamp(*at, -1e15, 1e15));
  if (rank > 0 && piece.axis >= 0 && piece.axis < rank) {
    const Dim size = program.value(whole).dims[static_cast<size_t>(piece.axis)];
    if (piece.begin < 0 && size >= 0) piece.begin += size;
    piece.to_end = size >= 0 && piece.begin + 1 == size;
  }
  piece.length = 1;
  return piece;
}

}  // namespace

ValueId Resolve(const Program& program, ValueId id) {
  for (int i = 0; i < kChain; ++i) {
    const Node* node = program.ProducerOf(id);
    if (!node || node->in.empty() || node->in[0] == kNone) return id;
    if (node->op != Op::kIdentity && node->op != Op::kCast && node->op != Op::kDropout) return id;
    id = node->in[0];
  }
  return id;
}

ValueId SkipLayout(const Program& program, ValueId id) {
  for (int i = 0; i < kChain; ++i) {
    const Node* node = program.ProducerOf(id);
    if (!node || !IsLayout(node->op) || node->in.empty() || node->in[0] == kNone) return id;
    id = node->in[0];
  }
  return id;
}

std::optional<Piece> FindPiece(const Program& program, ValueId id) {
  id = SkipLayout(program, id);
  const Node* node = program.ProducerOf(id);
  if (!node) return std::nullopt;
  const NodeId at = program.value(id).producer;
  switch (node->op) {
    case Op::kSlice:
      return FromSlice(program, *node, at);
    case Op::kSplit:
      return FromSplit(program, *node, at, id);
    case Op::kGather:
      return FromGather(program, *node, at);
    default:
      return std::nullopt;
  }
}

const Node* Makes(const Program& program, ValueId id, Op op) {
  const Node* node = program.ProducerOf(id);
  return node && node->op == op ? node : nullptr;
}

const Node* BehindLayout(const Program& program, ValueId id, Op op) {
  return id == kNone ? nullptr : Makes(program, SkipLayout(program, id), op);
}

bool IsSoftmax(const Program& program, NodeId id) {
  const Node& node = program.node(id);
  if (node.op == Op::kSoftmax || node.op == Op::kAttention) return true;
  if (node.op == Op::kContrib) {
    const std::string& type = node.proto->op_type();
    return type == "MultiHeadAttention" || type == "Attention" || type == "BiasSoftmax";
  }
  if (node.op != Op::kDiv) return false;
  const Node* sum = BehindLayout(program, node.In(1), Op::kReduceSum);
  if (sum == nullptr || sum->In(0) == kNone || node.In(0) == kNone) return false;
  const ValueId exp = Resolve(program, node.In(0));
  return Makes(program, exp, Op::kExp) && Resolve(program, sum->In(0)) == exp;
}

bool Forward(const Program& program, ValueId from, int limit,
             const std::function<bool(NodeId, ValueId)>& visit,
             const std::function<bool(NodeId, ValueId)>& pass) {
  std::vector<ValueId> queue = {from};
  std::unordered_set<NodeId> seen;
  for (size_t at = 0; at < queue.size(); ++at) {
    const ValueId via = queue[at];
    for (const NodeId id : program.value(via).consumers) {
      if (!seen.insert(id).second) continue;
      if (static_cast<int>(seen.size()) > limit) return false;
      if (visit(id, via)) return true;
      if (!pass(id, via)) continue;
      for (const ValueId out : program.node(id).out) {
        if (out != kNone) queue.push_back(out);
      }
    }
  }
  return false;
}

bool DependsOn(const Program& program, ValueId from, ValueId on, int limit, bool fallback) {
  if (from == on) return true;
  // Nodes stand in order: nothing made before `on` can depend on it.
  const NodeId floor = program.value(on).producer;
  std::vector<ValueId> queue = {from};
  std::unordered_set<ValueId> seen = {from};
  for (size_t at = 0; at < queue.size(); ++at) {
    const NodeId id = program.value(queue[at]).producer;
    if (id == kNone || id <= floor) continue;
    for (const ValueId in : program.node(id).in) {
      if (in == kNone || !seen.insert(in).second) continue;
      if (in == on) return true;
      if (static_cast<int>(seen.size()) > limit) return fallback;
      queue.push_back(in);
    }
  }
  return false;
}

}  // namespace mk::scan
