// Small steps through a Program that several rules share.
#ifndef MERGEKERNEL_VERIFY_SCAN_WALK_H_
#define MERGEKERNEL_VERIFY_SCAN_WALK_H_

#include <functional>
#include <optional>
#include <vector>

#include "verify/scan/fold.h"
#include "verify/scan/program.h"

namespace mk::scan {

// Back through Identity, Cast and Dropout: the same numbers in the same places.
ValueId Resolve(const Program& program, ValueId id);
// Back through everything that only lays out anew (IsLayout).
ValueId SkipLayout(const Program& program, ValueId id);

// A part of a tensor along one axis: a Slice of one axis, one output of a Split, or a Gather with
// one constant index.
struct Piece {
  ValueId whole = kNone;
  NodeId node = kNone;
  int64_t axis = 0;   // from the front when the rank is known
  int64_t begin = 0;  // first element
  int64_t step = 1;
  int64_t length = 0;   // elements taken; -1 unknown
  bool to_end = false;  // up to the end of the axis, whose size may be unknown
};
// `id` as a piece, looked for through layout ops (Unsqueeze, Reshape, ...).
std::optional<Piece> FindPiece(const Program& program, ValueId id);

// The node that makes `id` behind layout ops, if it is an `op`.
const Node* BehindLayout(const Program& program, ValueId id, Op op);
// The same without looking behind layout.
const Node* Makes(const Program& program, ValueId id, Op op);

// Softmax, or its parts: Div(Exp(x), ReduceSum(Exp(x))). Also the Attention operators.
bool IsSoftmax(const Program& program, NodeId id);

// Forward from `from`, breadth first, through nodes for which `pass` holds, over at most `limit`
// nodes; calls `visit` on each node met (also those not passed) until it returns true.
bool Forward(const Program& program, ValueId from, int limit,
             const std::function<bool(NodeId, ValueId via)>& visit,
             const std::function<bool(NodeId, ValueId via)>& pass);

// Whether `from` depends on `on`, looking at no more than `limit` nodes. Exact where the limit is
// not met; `fallback` is the answer where it is.
bool DependsOn(const Program& program, ValueId from, ValueId on, int limit, bool fallback);

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_WALK_H_
