// Constant folding over small tensors, and shapes. Both are lenient: what cannot be told is left
// unknown, and nothing a file says can make them fail.
#ifndef MERGEKERNEL_VERIFY_SCAN_FOLD_H_
#define MERGEKERNEL_VERIFY_SCAN_FOLD_H_

#include <optional>
#include <vector>

#include "verify/scan/program.h"

namespace mk::scan {

// The contents of `node`'s outputs as far as its inputs' contents (and, for Shape and Size, their
// shapes) tell them; one entry per output, empty where nothing is known.
std::vector<std::optional<SmallTensor>> Fold(const Program& program, const Node& node);

// What a node's output is, as far as shape inference here goes.
struct Inferred {
  bool has_rank = false;
  Dims dims;
  int32_t type = kUndefined;
};
std::vector<Inferred> InferShapes(const Program& program, const Node& node);

// The axes of Squeeze, Unsqueeze and the reductions: an attribute up to opset 12 (17), an input
// after. Nothing where they are given but not known. `given` says whether there were any.
std::optional<std::vector<int64_t>> Axes(const Program& program, const Node& node, bool* given);

// `axis` of a tensor of `rank` dimensions, counted from the front; nothing when out of range.
inline std::optional<int64_t> Axis(int64_t axis, int64_t rank) {
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  return axis;
}

// Begin, end, axes and steps of a Slice, wherever this opset keeps them; nothing where not known.
// Begin and end are as written (negative, or past the end).
struct SliceSpec {
  std::vector<int64_t> begins, ends, axes, steps;
};
std::optional<SliceSpec> ReadSlice(const Program& program, const Node& node);
// `begin` and `end` of one axis of size `dim`, clamped as the specification says.
void ClampSlice(int64_t dim, int64_t step, int64_t* begin, int64_t* end);
int64_t SliceLength(int64_t begin, int64_t end, int64_t step);

// The sizes of a Split's outputs along its axis; nothing where not known.
std::optional<std::vector<int64_t>> SplitSizes(const Program& program, const Node& node);

// The contents of input `i`, or null.
inline const SmallTensor* Contents(const Program& program, const Node& node, size_t i) {
  const ValueId id = node.In(i);
  return id == kNone ? nullptr : program.value(id).data.get();
}

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_FOLD_H_
