// Shape inference for the operators that models of this kind are made of. An operator that is not
// here has outputs of unknown rank, unless the file states them.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "core/base/checked.h"
#include "verify/scan/fold.h"

namespace mk::scan {
namespace {

// The window of Conv, pooling and the like along one axis.
struct Window {
  int64_t kernel = 1, stride = 1, dilation = 1, pad = 0;
};

class Inference {
 public:
  Inference(const Program& program, const Node& node) : program_(program), node_(node) {}

  std::vector<Inferred> Run() {
    std::vector<Inferred> out(node_.out.size());
    if (out.empty()) return out;
    One(&out);
    return out;
  }

 private:
  bool HasRank(size_t i) const {
    const ValueId id = node_.In(i);
    return id != kNone && program_.value(id).has_rank;
  }
  const Dims& InDims(size_t i) const { return program_.value(node_.In(i)).dims; }
  int32_t InType(size_t i) const {
    const ValueId id = node_.In(i);
    return id == kNone ? int32_t{kUndefined} : program_.value(id).type;
  }
  int64_t Int(const char* name, int64_t fallback) const {
    return IntAttribute(*node_.proto, name, fallback);
  }
  static Inferred Make(int32_t type, Dims dims) { return {true, std::move(dims), type}; }
  Inferred Same(size_t i) const {
    return HasRank(i) ? Make(InType(i), InDims(i)) : Inferred{false, {}, InType(i)};
  }

  void One(std::vector<Inferred>* out);
  Inferred Elementwise() const;
  Inferred MatMul() const;
  Inferred Conv(bool transposed) const;
  Inferred Reshape() const;
  Inferred Transposed() const;
  Inferred Concat() const;
  Inferred Gather() const;
  Inferred Slice() const;
  Inferred Squeeze() const;
  Inferred Unsqueeze() const;
  Inferred Reduce() const;
  Inferred Resize() const;
  Inferred Pad() const;
  Inferred FromShapeInput(size_t i, int32_t type) const;
  void Split(std::vector<Inferred>* out) const;
  void TopK(std::vector<Inferred>* out) const;

  const Program& program_;
  const Node& node_;
};

Dim BroadcastDim(Dim a, Dim b) {
  if (a == 1) return b;
  if (b == 1) return a;
  if (a == b) return a;
  // A known size above 1 wins: the other must be equal to it, or 1.
  if (a > 1) return a;
  if (b > 1) return b;
  return kUnknownDim;
}

Dims BroadcastDims(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const Dim x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const Dim y = i < b.size() ? b[b.size() - 1 - i] : 1;
    out[out.size() - 1 - i] = BroadcastDim(x, y);
  }
  return out;
}

Inferred Inference::Elementwise() const {
  Inferred out = {true, {}, InType(0)};
  size_t operands = node_.in.size();
  switch (node_.op) {
    case Op::kCast:
      out.type = static_cast<int32_t>(Int("to", kFloat));
      break;
    case Op::kCastLike:
      out.type = InType(1);
      operands = 1;
      break;
    case Op::kWhere:
      out.type = InType(1);
      break;
    case Op::kEqual:
    case Op::kLess:
    case Op::kLessOrEqual:
    case Op::kGreater:
    case Op::kGreaterOrEqual:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kNot:
    case Op::kIsNaN:
    case Op::kIsInf:
      out.type = kBool;
      break;
    case Op::kClip:
    case Op::kDropout:
      operands = 1;
      break;
    case Op::kQuantizeLinear:
      out.type = node_.In(2) != kNone ? InType(2) : int32_t{kUint8};
      operands = 1;
      break;
    case Op::kDequantizeLinear:
      out.type = InType(1);
      operands = 1;
      break;
    default:
      break;
  }
  for (size_t i = 0; i < operands; ++i) {
    if (!HasRank(i)) return {false, {}, out.type};
    out.dims = i == 0 ? InDims(0) : BroadcastDims(out.dims, InDims(i));
  }
  return out;
}

Inferred Inference::MatMul() const {
  if (!HasRank(0) || !HasRank(1)) return {false, {}, InType(0)};
  Dims a = InDims(0), b = InDims(1);
  if (a.empty() || b.empty()) return {false, {}, InType(0)};
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  const Dims batch = BroadcastDims(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  Dims out = batch;
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(b.back());
  return Make(InType(0), out);
}

// The size of one axis after a sliding window; unknown stays unknown.
Dim Slide(Dim size, const Window& window, bool same, bool ceil) {
  if (size < 0 || window.stride <= 0) return kUnknownDim;
  if (same) return (size + window.stride - 1) / window.stride;
  const auto span =
      CheckedMul(static_cast<uint64_t>(window.dilation), static_cast<uint64_t>(window.kernel - 1));
  if (!span || *span > INT32_MAX || size > INT32_MAX || std::llabs(window.pad) > INT32_MAX)
    return kUnknownDim;
  const int64_t room = size + window.pad - static_cast<int64_t>(*span) - 1;
  if (room < 0) return kUnknownDim;
  return (room + (ceil ? window.stride - 1 : 0)) / window.stride + 1;
}

Dim SlideBack(Dim size, const Window& window, int64_t output_padding) {
  if (size <= 0 || size > INT32_MAX || window.stride <= 0 || window.stride > INT32_MAX ||
      window.kernel > INT32_MAX || window.dilation > INT32_MAX ||
      std::llabs(window.pad) > INT32_MAX || std::llabs(output_padding) > INT32_MAX) {
    return kUnknownDim;
  }
  const auto a = CheckedMul(static_cast<uint64_t>(size - 1), static_cast<uint64_t>(window.stride));
  const int64_t out = static_cast<int64_t>(*a) + output_padding +
                      (window.kernel - 1) * window.dilation + 1 - window.pad;
  return out > 0 ? out : kUnknownDim;
}

Inferred Inference::Conv(bool transposed) const {
  const bool is_pool =
      node_.op == Op::kMaxPool || node_.op == Op::kAveragePool || node_.op == Op::kLpPool;
  if (!HasRank(0) || InDims(0).size() < 3) return {false, {}, InType(0)};
  Dims out = InDims(0);
  std::vector<int64_t> kernel = IntsAttribute(*node_.proto, "kernel_shape");
  if (!is_pool) {
    if (!HasRank(1) || InDims(1).size() != out.size()) return {false, {}, InType(0)};
    const Dims& weight = InDims(1);
    const int64_t group = Int("group", 1);
    out[1] = !transposed ? weight[0]
             : weight[1] < 0 || weight[1] > INT32_MAX || group < 0 || group > INT32_MAX
                 ? kUnknownDim
                 : weight[1] * group;
    if (kernel.empty()) kernel.assign(weight.begin() + 2, weight.end());
  }
  const size_t spatial = out.size() - 2;
  const auto strides = IntsAttribute(*node_.proto, "strides");
  const auto dilations = IntsAttribute(*node_.proto, "dilations");
  const auto pads = IntsAttribute(*node_.proto, "pads");
  const auto extra = IntsAttribute(*node_.proto, "output_padding");
  const std::string auto_pad = TextAttribute(*node_.proto, "auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (kernel.size() != spatial) return {false, {}, InType(0)};
  for (size_t i = 0; i < spatial; ++i) {
    Window window;
    window.kernel = kernel[i];
    if (i < strides.size()) window.stride = strides[i];
    if (i < dilations.size()) window.dilation = dilations[i];
    if (pads.size() == 2 * spatial && pads[i] < INT32_MAX && pads[i + spatial] < INT32_MAX &&
        pads[i] > INT32_MIN && pads[i + spatial] > INT32_MIN) {
      window.pad = pads[i] + pads[i + spatial];
    }
    if (window.kernel < 1 || window.dilation < 1) {
      out[i + 2] = kUnknownDim;
    } else if (transposed) {
      out[i + 2] =
          same ? kUnknownDim : SlideBack(out[i + 2], window, i < extra.size() ? extra[i] : 0);
    } else {
      out[i + 2] = Slide(out[i + 2], window, same, Int("ceil_mode", 0) != 0);
    }
  }
  return Make(InType(0), out);
}

Inferred Inference::Reshape() const {
  std::vector<Element> target;
  if (const auto* attribute = FindAttribute(*node_.proto, "shape")) {  // opset 1
    for (const int64_t dim : attribute->ints())
      target.push_back(Element::Number(static_cast<double>(dim)));
  } else if (const SmallTensor* shape = Contents(program_, node_, 1)) {
    target = shape->elements;
  } else if (node_.In(1) != kNone && HasRank(1) && InDims(1).size() == 1 && InDims(1)[0] >= 0 &&
             InDims(1)[0] <= 16) {
    target.resize(static_cast<size_t>(InDims(1)[0]));
  } else {
    return {false, {}, InType(0)};
  }
  if (target.size() > 64) return {false, {}, InType(0)};
  const bool keep_zero = Int("allowzero", 0) != 0;
  Dims out;
  int64_t free_axis = -1;
  for (size_t i = 0; i < target.size(); ++i) {
    const Element& element = target[i];
    if (element.state == Element::kNumber && element.number == 0 && !keep_zero) {
      out.push_back(HasRank(0) && i < InDims(0).size() ? InDims(0)[i] : kUnknownDim);
    } else if (element.state == Element::kNumber && element.number == -1) {
      free_axis = static_cast<int64_t>(i);
      out.push_back(kUnknownDim);
    } else {
      out.push_back(element.AsDim());
    }
  }
  if (free_axis >= 0 && HasRank(0)) {
    // Sizes and symbols that stand on both sides cancel; what is left on the input's side is the
    // free one.
    int64_t left = 1;
    std::multiset<Dim> open;
    bool known = true;
    const auto multiply = [&](int64_t* product, Dim dim) {
      known = known && !__builtin_mul_overflow(*product, dim, product);
    };
    for (const Dim dim : InDims(0)) {
      if (dim >= 0) {
        multiply(&left, dim);
      } else if (dim == kUnknownDim) {
        known = false;
      } else {
        open.insert(dim);
      }
    }
    int64_t right = 1;
    for (size_t i = 0; i < out.size(); ++i) {
      if (static_cast<int64_t>(i) == free_axis) continue;
      if (out[i] >= 0) {
        multiply(&right, out[i]);
      } else if (const auto found = open.find(out[i]); found != open.end()) {
        open.erase(found);
      } else {
        known = false;
      }
    }
    const auto at = static_cast<size_t>(free_axis);
    if (known && open.empty() && right > 0 && left % right == 0) out[at] = left / right;
    if (known && open.size() == 1 && left == right) out[at] = *open.begin();
  }
  return Make(InType(0), out);
}

Inferred Inference::Transposed() const {
  if (!HasRank(0)) return {false, {}, InType(0)};
  const Dims& in = InDims(0);
  std::vector<int64_t> order = IntsAttribute(*node_.proto, "perm");
  if (order.empty()) {
    for (size_t i = in.size(); i-- > 0;) order.push_back(static_cast<int64_t>(i));
  }
  if (order.size() != in.size()) return {false, {}, InType(0)};
  Dims out;
  for (const int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<int64_t>(in.size())) return {false, {}, InType(0)};
    out.push_back(in[static_cast<size_t>(axis)]);
  }
  return Make(InType(0), out);
}

Inferred Inference::Concat() const {
  if (!HasRank(0)) return {false, {}, InType(0)};
  Dims out = InDims(0);
  const auto axis = Axis(Int("axis", 1), static_cast<int64_t>(out.size()));
  if (!axis) return {false, {}, InType(0)};
  const auto at = static_cast<size_t>(*axis);
  for (size_t i = 1; i < node_.in.size(); ++i) {
    if (!HasRank(i) || InDims(i).size() != out.size()) {
      out[at] = kUnknownDim;
      continue;
    }
    const Dims& part = InDims(i);
    for (size_t d = 0; d < out.size(); ++d) {
      if (d == at) {
        const bool fits = out[d] >= 0 && part[d] >= 0 && out[d] <= INT64_MAX - part[d];
        out[d] = fits ? out[d] + part[d] : kUnknownDim;
      } else if (out[d] < 0) {
        out[d] = part[d] >= 0 ? part[d] : out[d];
      }
    }
  }
  return Make(InType(0), out);
}

Inferred Inference::Gather() const {
  if (!HasRank(0) || !HasRank(1)) return {false, {}, InType(0)};
  const Dims &data = InDims(0), &indices = InDims(1);
  const auto axis = Axis(Int("axis", 0), static_cast<int64_t>(data.size()));
  if (!axis) return {false, {}, InType(0)};
  Dims out(data.begin(), data.begin() + *axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), data.begin() + *axis + 1, data.end());
  return Make(InType(0), out);
}

Inferred Inference::Slice() const {
  if (!HasRank(0)) return {false, {}, InType(0)};
  Dims out = InDims(0);
  const auto spec = ReadSlice(program_, node_);
  if (!spec) {
    // The axes may be known although begin or end is not.
    const SmallTensor* list = Contents(program_, node_, 3);
    const auto axes = list ? list->Integers() : std::nullopt;
    std::vector<bool> cut(out.size(), !axes.has_value());
    for (const int64_t given : axes.value_or(std::vector<int64_t>())) {
      if (const auto axis = Axis(given, static_cast<int64_t>(out.size())))
        cut[static_cast<size_t>(*axis)] = true;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      if (cut[i]) out[i] = kUnknownDim;
    }
    return Make(InType(0), out);
  }
  for (size_t i = 0; i < spec->axes.size(); ++i) {
    const auto axis = Axis(spec->axes[i], static_cast<int64_t>(out.size()));
    if (!axis) return {false, {}, InType(0)};
    Dim& dim = out[static_cast<size_t>(*axis)];
    int64_t begin = spec->begins[i], end = spec->ends[i];
    const int64_t step = spec->steps[i];
    if (dim >= 0) {
      ClampSlice(dim, step, &begin, &end);
      dim = SliceLength(begin, end, step);
    } else if (!(begin == 0 && end > INT32_MAX && step == 1)) {
      // [:k] of a symbolic axis is at most k, and k in all real uses; -k: likewise.
      dim = kUnknownDim;
    }
  }
  return Make(InType(0), out);
}

Inferred Inference::Squeeze() const {
  if (!HasRank(0)) return {false, {}, InType(0)};
  bool given = false;
  const auto axes = Axes(program_, node_, &given);
  if (!axes) return {false, {}, InType(0)};
  const Dims& in = InDims(0);
  std::vector<bool> drop(in.size(), false);
  for (const int64_t each : *axes) {
    const auto axis = Axis(each, static_cast<int64_t>(in.size()));
    if (!axis) return {false, {}, InType(0)};
    drop[static_cast<size_t>(*axis)] = true;
  }
  Dims out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!given && in[i] < 0) return {false, {}, InType(0)};
    if (given ? !drop[i] : in[i] != 1) out.push_back(in[i]);
  }
  return Make(InType(0), out);
}

Inferred Inference::Unsqueeze() const {
  if (!HasRank(0)) return {false, {}, InType(0)};
  bool given = false;
  const auto axes = Axes(program_, node_, &given);
  if (!axes || axes->size() > 64) return {false, {}, InType(0)};
  const auto rank = static_cast<int64_t>(InDims(0).size() + axes->size());
  std::vector<bool> added(static_cast<size_t>(rank), false);
  for (const int64_t each : *axes) {
    const auto axis = Axis(each, rank);
    if (!axis || added[static_cast<size_t>(*axis)]) return {false, {}, InType(0)};
    added[static_cast<size_t>(*axis)] = true;
  }
  Dims out;
  size_t next = 0;
  for (const bool is_new : added) out.push_back(is_new ? 1 : InDims(0)[next++]);
  return Make(InType(0), out);
}

Inferred Inference::Reduce() const {
  const bool is_arg = node_.op == Op::kArgMax || node_.op == Op::kArgMin;
  const int32_t type = is_arg ? int32_t{kInt64} : InType(0);
  if (!HasRank(0)) return {false, {}, type};
  const Dims& in = InDims(0);
  bool given = true;
  std::optional<std::vector<int64_t>> axes = std::vector<int64_t>{Int("axis", 0)};
  if (!is_arg) axes = Axes(program_, node_, &given);
  if (!axes) return {false, {}, type};
  if (!given && Int("noop_with_empty_axes", 0) != 0) return Make(type, in);
  std::vector<bool> reduced(in.size(), !given);
  for (const int64_t each : *axes) {
    const auto axis = Axis(each, static_cast<int64_t>(in.size()));
    if (!axis) return {false, {}, type};
    reduced[static_cast<size_t>(*axis)] = true;
  }
  const bool keep = Int("keepdims", 1) != 0;
  Dims out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!reduced[i]) out.push_back(in[i]);
    if (reduced[i] && keep) out.push_back(1);
  }
  return Make(type, out);
}

Inferred Inference::Resize() const {
  if (!HasRank(0)) return {false, {}, InType(0)};
  Dims out = InDims(0);
  const size_t scales_at = node_.op == Op::kUpsample || node_.in.size() == 2 ? 1 : 2;
  const std::vector<int64_t> axes = IntsAttribute(*node_.proto, "axes");
  const SmallTensor* sizes = node_.op == Op::kResize ? Contents(program_, node_, 3) : nullptr;
  const SmallTensor* scales = Contents(program_, node_, scales_at);
  for (size_t i = 0; i < out.size(); ++i) {
    size_t at = i;
    if (!axes.empty()) {
      const auto found = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i));
      if (found == axes.end()) continue;
      at = static_cast<size_t>(found - axes.begin());
    }
    if (sizes && at < sizes->elements.size()) {
      out[i] = sizes->elements[at].AsDim();
    } else if (scales && at < scales->elements.size() && out[i] >= 0 &&
               scales->elements[at].state == Element::kNumber) {
      const double size = std::floor(static_cast<double>(out[i]) * scales->elements[at].number);
      out[i] = size >= 0 && size < 1e15 ? static_cast<Dim>(size) : kUnknownDim;
    } else {
      out[i] = kUnknownDim;
    }
  }
  return Make(InType(0), out);
}

Inferred Inference::Pad() const {
  if (!HasRank(0)) return {false, {}, InType(0)};
  Dims out = InDims(0);
  std::optional<std::vector<int64_t>> pads;
  if (const auto* attribute = FindAttribute(*node_.proto, "pads")) {
    pads = std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
  } else if (const SmallTensor* given = Contents(program_, node_, 1)) {
    pads = given->Integers();
  }
  std::vector<int64_t> axes;
  if (const SmallTensor* given = Contents(program_, node_, 3)) {
    axes = given->Integers().value_or(std::vector<int64_t>());
  } else {
    for (size_t i = 0; i < out.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (!pads || pads->size() != 2 * axes.size())
    return Make(InType(0), Dims(out.size(), kUnknownDim));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = Axis(axes[i], static_cast<int64_t>(out.size()));
    if (!axis) return {false, {}, InType(0)};
    Dim& dim = out[static_cast<size_t>(*axis)];
    const int64_t low = (*pads)[i], high = (*pads)[i + axes.size()];
    if (low == 0 && high == 0) continue;
    const bool fits = dim >= 0 && dim < INT32_MAX && std::llabs(low / 2) < INT32_MAX &&
                      std::llabs(high / 2) < INT32_MAX;
    dim = fits && dim + low + high >= 0 ? dim + low + high : kUnknownDim;
  }
  return Make(InType(0), out);
}

// Expand, Tile's kin, ConstantOfShape: input `i` holds the shape.
Inferred Inference::FromShapeInput(size_t i, int32_t type) const {
  Dims target;
  if (const SmallTensor* shape = Contents(program_, node_, i)) {
    if (shape->elements.size() > 64) return {false, {}, type};
    for (const Element& element : shape->elements) target.push_back(element.AsDim());
  } else if (HasRank(i) && InDims(i).size() == 1 && InDims(i)[0] >= 0 && InDims(i)[0] <= 16) {
    target.assign(static_cast<size_t>(InDims(i)[0]), kUnknownDim);
  } else {
    return {false, {}, type};
  }
  return Make(type, target);
}

void Inference::Split(std::vector<Inferred>* out) const {
  if (!HasRank(0)) return;
  const auto axis = Axis(Int("axis", 0), static_cast<int64_t>(InDims(0).size()));
  const auto sizes = SplitSizes(program_, node_);
  if (!axis) return;
  for (size_t i = 0; i < out->size(); ++i) {
    (*out)[i] = Same(0);
    (*out)[i].dims[static_cast<size_t>(*axis)] =
        sizes && i < sizes->size() && (*sizes)[i] >= 0 ? (*sizes)[i] : kUnknownDim;
  }
}

void Inference::TopK(std::vector<Inferred>* out) const {
  if (!HasRank(0)) return;
  const auto axis = Axis(Int("axis", -1), static_cast<int64_t>(InDims(0).size()));
  if (!axis) return;
  Inferred shape = Same(0);
  Dim k = FindAttribute(*node_.proto, "k") ? Int("k", kUnknownDim) : kUnknownDim;
  if (const SmallTensor* given = Contents(program_, node_, 1); given && given->elements.size() == 1)
    k = given->elements[0].AsDim();
  shape.dims[static_cast<size_t>(*axis)] = k < 0 && !IsSymbol(k) ? kUnknownDim : k;
  (*out)[0] = shape;
  if (out->size() > 1) {
    (*out)[1] = shape;
    (*out)[1].type = kInt64;
  }
}

void Inference::One(std::vector<Inferred>* out) {
  Inferred& first = (*out)[0];
  if (IsElementwise(node_.op)) {
    first = Elementwise();
    if (node_.op == Op::kDropout && out->size() > 1) (*out)[1] = Make(kBool, first.dims);
    if (node_.op == Op::kDropout && out->size() > 1) (*out)[1].has_rank = first.has_rank;
    return;
  }
  if (IsReduction(node_.op)) {
    first = Reduce();
    return;
  }
  switch (node_.op) {
    case Op::kArgMax:
    case Op::kArgMin:
      first = Reduce();
      break;
    case Op::kMatMul:
      first = MatMul();
      break;
    case Op::kGemm:
      if (HasRank(0) && HasRank(1) && InDims(0).size() == 2 && InDims(1).size() == 2) {
        first = Make(InType(0),
                     {InDims(0)[Int("transA", 0) ? 1 : 0], InDims(1)[Int("transB", 0) ? 0 : 1]});
      }
      break;
    case Op::kConv:
    case Op::kMaxPool:
    case Op::kAveragePool:
    case Op::kLpPool:
      first = Conv(false);
      if (out->size() > 1) (*out)[1] = {first.has_rank, first.dims, kInt64};
      break;
    case Op::kConvTranspose:
      first = Conv(true);
      break;
    case Op::kGlobalAveragePool:
    case Op::kGlobalMaxPool:
      first = Same(0);
      for (size_t i = 2; i < first.dims.size(); ++i) first.dims[i] = 1;
      break;
    case Op::kReshape:
      first = Reshape();
      break;
    case Op::kTranspose:
      first = Transposed();
      break;
    case Op::kConcat:
      first = Concat();
      break;
    case Op::kGather:
      first = Gather();
      break;
    case Op::kGatherElements:
      if (HasRank(1)) first = Make(InType(0), InDims(1));
      break;
    case Op::kSlice:
      first = Slice();
      break;
    case Op::kSqueeze:
      first = Squeeze();
      break;
    case Op::kUnsqueeze:
      first = Unsqueeze();
      break;
    case Op::kResize:
    case Op::kUpsample:
      first = Resize();
      break;
    case Op::kPad:
      first = Pad();
      break;
    case Op::kSplit:
      Split(out);
      break;
    case Op::kTopK:
      TopK(out);
      break;
    case Op::kExpand:
      first = FromShapeInput(1, InType(0));
      if (!first.has_rank || !HasRank(0)) {
        first.has_rank = false;
      } else {
        first.dims = BroadcastDims(InDims(0), first.dims);
      }
      break;
    case Op::kTile: {
      const SmallTensor* repeats = Contents(program_, node_, 1);
      first = Same(0);
      for (size_t i = 0; i < first.dims.size(); ++i) {
        const Dim times =
            repeats && i < repeats->elements.size() ? repeats->elements[i].AsDim() : kUnknownDim;
        if (times == 1) continue;
        const bool fits =
            times >= 0 && times < INT32_MAX && first.dims[i] >= 0 && first.dims[i] < INT32_MAX;
        first.dims[i] = fits ? first.dims[i] * times : kUnknownDim;
      }
      break;
    }
    case Op::kConstantOfShape:
      first = FromShapeInput(0, kFloat);
      break;
    case Op::kShape:
    case Op::kNonZero:
      first.type = kInt64;
      if (HasRank(0)) {
        const auto rank = static_cast<int64_t>(InDims(0).size());
        first = Make(kInt64, node_.op == Op::kShape ? Dims{rank} : Dims{rank, kUnknownDim});
      }
      if (node_.op == Op::kShape &&
          (FindAttribute(*node_.proto, "start") || FindAttribute(*node_.proto, "end")))
        first.has_rank = false;  // folding says how long it is
      break;
    case Op::kSize:
      first = Make(kInt64, {});
      break;
    case Op::kRange:
      first = Make(InType(0), {kUnknownDim});
      break;
    case Op::kNonMaxSuppression:
      first = Make(kInt64, {kUnknownDim, 3});
      break;
    case Op::kFlatten:
      if (HasRank(0)) {
        const auto rank = static_cast<int64_t>(InDims(0).size());
        int64_t axis = Int("axis", 1);
        if (axis < 0) axis += rank;
        if (axis < 0 || axis > rank) break;
        Dims dims = {1, 1};
        for (size_t i = 0; i < InDims(0).size(); ++i) {
          Dim& part = dims[static_cast<int64_t>(i) < axis ? 0 : 1];
          const Dim dim = InDims(0)[i];
          if (part == 1) {
            part = dim;
          } else if (dim != 1) {
            part = part >= 0 && dim >= 0 && !__builtin_mul_overflow(part, dim, &part) ? part
                                                                                      : kUnknownDim;
          }
        }
        first = Make(InType(0), dims);
      }
      break;
    case Op::kGridSample:
      if (HasRank(0) && HasRank(1) && InDims(0).size() == InDims(1).size() &&
          InDims(0).size() >= 3) {
        Dims dims = {InDims(0)[0], InDims(0)[1]};
        dims.insert(dims.end(), InDims(1).begin() + 1, InDims(1).end() - 1);
        first = Make(InType(0), dims);
      }
      break;
    case Op::kSoftmax:
    case Op::kLogSoftmax:
    case Op::kHardmax:
    case Op::kLayerNormalization:
    case Op::kRMSNormalization:
    case Op::kInstanceNormalization:
    case Op::kGroupNormalization:
    case Op::kBatchNormalization:
    case Op::kLpNormalization:
    case Op::kMeanVarianceNormalization:
    case Op::kLRN:
    case Op::kCumSum:
    case Op::kCumProd:
    case Op::kScatterND:
    case Op::kScatterElements:
    case Op::kScatter:
    case Op::kTensorScatter:
    case Op::kTrilu:
    case Op::kReverseSequence:
    case Op::kRotaryEmbedding:
    case Op::kRandomNormalLike:
    case Op::kRandomUniformLike:
      first = Same(0);
      break;
    case Op::kAttention:
      first = Same(0);
      break;
    default:
      break;
  }
}

}  // namespace

std::vector<Inferred> InferShapes(const Program& program, const Node& node) {
  return Inference(program, node).Run();
}

}  // namespace mk::scan
