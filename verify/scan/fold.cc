#include "verify/scan/fold.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace mk::scan {
namespace {

using Folded = std::optional<SmallTensor>;

std::vector<int64_t> Strides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

// Makes a tensor of `dims` whose element at each index is `at(index)`.
template <typename At>
Folded Fill(int32_t type, std::vector<int64_t> dims, At at) {
  const auto count = ElementCount(dims, kFoldedElements);
  if (!count) return std::nullopt;
  SmallTensor out;
  out.type = type;
  out.dims = std::move(dims);
  out.elements.reserve(static_cast<size_t>(*count));
  std::vector<int64_t> index(out.dims.size(), 0);
  for (int64_t n = 0; n < *count; ++n) {
    out.elements.push_back(at(index));
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < out.dims[i]) break;
      index[i] = 0;
    }
  }
  return out;
}

std::optional<std::vector<int64_t>> Broadcast(const std::vector<int64_t>& a,
                                              const std::vector<int64_t>& b) {
  std::vector<int64_t> out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

// The element of `tensor` that stands at `index` of a shape it broadcasts to.
const Element& AtBroadcast(const SmallTensor& tensor, const std::vector<int64_t>& index) {
  int64_t offset = 0;
  const size_t skip = index.size() - tensor.dims.size();
  for (size_t i = 0; i < tensor.dims.size(); ++i)
    offset = offset * tensor.dims[i] + (tensor.dims[i] == 1 ? 0 : index[i + skip]);
  return tensor.elements[static_cast<size_t>(offset)];
}

bool IsComparison(Op op) {
  return op == Op::kEqual || op == Op::kLess || op == Op::kLessOrEqual || op == Op::kGreater ||
         op == Op::kGreaterOrEqual || op == Op::kAnd || op == Op::kOr || op == Op::kXor;
}

double IntegerQuotient(double a, double b) { return b == 0 ? 0 : std::trunc(a / b); }

double Modulo(double a, double b, bool truncated) {
  if (b == 0) return 0;
  const double rest = std::fmod(a, b);
  return !truncated && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Element Binary(const Node& node, int32_t type, const Element& a, const Element& b) {
  // A symbol survives what leaves it alone.
  if (a.state == Element::kSymbol && b.state == Element::kNumber) {
    if ((node.op == Op::kAdd || node.op == Op::kSub) && b.number == 0) return a;
    if ((node.op == Op::kMul || node.op == Op::kDiv) && b.number == 1) return a;
  }
  if (b.state == Element::kSymbol && a.state == Element::kNumber) {
    if (node.op == Op::kAdd && a.number == 0) return b;
    if (node.op == Op::kMul && a.number == 1) return b;
  }
  if (a.state == Element::kSymbol && a == b && (node.op == Op::kEqual)) return Element::Number(1);
  // A dimension is never negative: tests for -1 (and the like) are decided without knowing it.
  if (a.state == Element::kSymbol && b.state == Element::kNumber && b.number < 0) {
    if (node.op == Op::kEqual || node.op == Op::kLess) return Element::Number(0);
    if (node.op == Op::kGreater) return Element::Number(1);
  }
  if (a.state != Element::kNumber || b.state != Element::kNumber) return {};
  const double x = a.number, y = b.number;
  const bool whole = !IsReal(type);
  switch (node.op) {
    case Op::kAdd:
      return Element::Number(x + y);
    case Op::kSub:
      return Element::Number(x - y);
    case Op::kMul:
      return Element::Number(x * y);
    case Op::kDiv:
      return Element::Number(whole ? IntegerQuotient(x, y) : x / y);
    case Op::kMod:
      return Element::Number(Modulo(x, y, IntAttribute(*node.proto, "fmod", 0) != 0));
    case Op::kPow:
      return Element::Number(std::pow(x, y));
    case Op::kMin:
      return Element::Number(std::min(x, y));
    case Op::kMax:
      return Element::Number(std::max(x, y));
    case Op::kEqual:
      return Element::Number(x == y);
    case Op::kLess:
      return Element::Number(x < y);
    case Op::kLessOrEqual:
      return Element::Number(x <= y);
    case Op::kGreater:
      return Element::Number(x > y);
    case Op::kGreaterOrEqual:
      return Element::Number(x >= y);
    case Op::kAnd:
      return Element::Number(x != 0 && y != 0);
    case Op::kOr:
      return Element::Number(x != 0 || y != 0);
    case Op::kXor:
      return Element::Number((x != 0) != (y != 0));
    default:
      return {};
  }
}

Folded FoldBinary(const Node& node, const SmallTensor& a, const SmallTensor& b) {
  const auto dims = Broadcast(a.dims, b.dims);
  if (!dims) return std::nullopt;
  const int32_t type = IsComparison(node.op) ? int32_t{kBool} : a.type;
  return Fill(type, *dims, [&](const std::vector<int64_t>& index) {
    return Binary(node, a.type, AtBroadcast(a, index), AtBroadcast(b, index));
  });
}

Element Cast(int32_t to, const Element& element) {
  if (element.state != Element::kNumber) return element;
  if (to == kBool) return Element::Number(element.number != 0);
  return IsReal(to) ? element : Element::Number(std::trunc(element.number));
}

Folded FoldUnary(const Node& node, const SmallTensor& a) {
  SmallTensor out = a;
  if (node.op == Op::kCast)
    out.type = static_cast<int32_t>(IntAttribute(*node.proto, "to", kFloat));
  for (Element& element : out.elements) {
    if (node.op == Op::kIdentity) continue;
    if (node.op == Op::kCast) {
      element = Cast(out.type, element);
      continue;
    }
    if (element.state != Element::kNumber) {
      element = {};
      continue;
    }
    const double x = element.number;
    switch (node.op) {
      case Op::kNeg:
        element.number = -x;
        break;
      case Op::kAbs:
        element.number = std::fabs(x);
        break;
      case Op::kFloor:
        element.number = std::floor(x);
        break;
      case Op::kCeil:
        element.number = std::ceil(x);
        break;
      case Op::kSqrt:
        element.number = std::sqrt(x);
        break;
      case Op::kNot:
        element.number = x == 0;
        break;
      default:
        return std::nullopt;
    }
  }
  return out;
}

Folded FoldWhere(const SmallTensor& condition, const SmallTensor& a, const SmallTensor& b) {
  auto dims = Broadcast(a.dims, b.dims);
  if (dims) dims = Broadcast(*dims, condition.dims);
  if (!dims) return std::nullopt;
  return Fill(a.type, *dims, [&](const std::vector<int64_t>& index) {
    const Element& test = AtBroadcast(condition, index);
    const Element& x = AtBroadcast(a, index);
    const Element& y = AtBroadcast(b, index);
    if (test.state == Element::kNumber) return test.number != 0 ? x : y;
    return x == y ? x : Element{};
  });
}

Folded FoldGather(const Node& node, const SmallTensor& data, const SmallTensor& indices) {
  const auto axis = Axis(IntAttribute(*node.proto, "axis", 0), data.rank());
  if (!axis) return std::nullopt;
  const auto at = static_cast<size_t>(*axis);
  std::vector<int64_t> dims(data.dims.begin(), data.dims.begin() + *axis);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), data.dims.begin() + *axis + 1, data.dims.end());
  const std::vector<int64_t> strides = Strides(data.dims);
  const int64_t size = data.dims[at];
  return Fill(data.type, dims, [&](const std::vector<int64_t>& index) -> Element {
    int64_t which = 0, offset = 0;
    for (size_t i = 0; i < indices.dims.size(); ++i)
      which = which * indices.dims[i] + index[at + i];
    const Element& chosen = indices.elements[static_cast<size_t>(which)];
    if (chosen.state != Element::kNumber || !(std::fabs(chosen.number) < 1e9)) return {};
    int64_t row = static_cast<int64_t>(chosen.number);
    if (row < 0) row += size;
    if (row < 0 || row >= size) return {};
    for (size_t i = 0; i < data.dims.size(); ++i) {
      const int64_t place = i < at ? index[i] : i == at ? row : index[i + indices.dims.size() - 1];
      offset += place * strides[i];
    }
    return data.elements[static_cast<size_t>(offset)];
  });
}

Folded FoldSlice(const Program& program, const Node& node, const SmallTensor& data) {
  const auto spec = ReadSlice(program, node);
  if (!spec) return std::nullopt;
  std::vector<int64_t> begin(data.dims.size(), 0), step(data.dims.size(), 1), dims = data.dims;
  for (size_t i = 0; i < spec->axes.size(); ++i) {
    const auto axis = Axis(spec->axes[i], data.rank());
    if (!axis || spec->steps[i] == 0) return std::nullopt;
    const auto at = static_cast<size_t>(*axis);
    int64_t from = spec->begins[i], to = spec->ends[i];
    ClampSlice(data.dims[at], spec->steps[i], &from, &to);
    begin[at] = from;
    step[at] = spec->steps[i];
    dims[at] = SliceLength(from, to, spec->steps[i]);
  }
  const std::vector<int64_t> strides = Strides(data.dims);
  return Fill(data.type, dims, [&](const std::vector<int64_t>& index) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i)
      offset += (begin[i] + index[i] * step[i]) * strides[i];
    return data.elements[static_cast<size_t>(offset)];
  });
}

Folded FoldConcat(const Program& program, const Node& node) {
  SmallTensor out;
  size_t at = 0;
  if (node.in.size() > 1024) return std::nullopt;
  for (size_t i = 0; i < node.in.size(); ++i) {
    const SmallTensor* part = Contents(program, node, i);
    if (part == nullptr) {
      // A piece of known length but unknown contents keeps the others' places: shape vectors.
      const ValueId id = node.in[i];
      if (id == kNone) return std::nullopt;
      const Value& value = program.value(id);
      if (!value.has_rank || value.dims.size() != 1 || value.dims[0] < 0 || value.dims[0] > 64)
        return std::nullopt;
      out.dims = {(i == 0 ? 0 : out.dims[0]) + value.dims[0]};
      out.elements.resize(static_cast<size_t>(out.dims[0]));
      out.type = value.type;
      continue;
    }
    if (i == 0) {
      const auto axis = Axis(IntAttribute(*node.proto, "axis", 0), part->rank());
      if (!axis) return std::nullopt;
      at = static_cast<size_t>(*axis);
      out = *part;
      continue;
    }
    if (part->dims.size() != out.dims.size() || at >= out.dims.size()) return std::nullopt;
    if (out.dims.size() == 1) {
      out.elements.insert(out.elements.end(), part->elements.begin(), part->elements.end());
      out.dims[0] += part->dims[0];
      if (out.dims[0] > kFoldedElements) return std::nullopt;
      continue;
    }
    if (i > 64) return std::nullopt;
    for (size_t d = 0; d < out.dims.size(); ++d) {
      if (d != at && part->dims[d] != out.dims[d]) return std::nullopt;
    }
    std::vector<int64_t> dims = out.dims;
    dims[at] += part->dims[at];
    const SmallTensor first = std::move(out);
    auto joined = Fill(first.type, dims, [&](std::vector<int64_t> index) {
      const bool in_first = index[at] < first.dims[at];
      if (!in_first) index[at] -= first.dims[at];
      return AtBroadcast(in_first ? first : *part, index);
    });
    if (!joined) return std::nullopt;
    out = *std::move(joined);
  }
  if (out.elements.size() > static_cast<size_t>(kFoldedElements)) return std::nullopt;
  return out;
}

Folded FoldReduce(const Program& program, const Node& node, const SmallTensor& data) {
  bool given = false;
  const auto axes = Axes(program, node, &given);
  if (!axes) return std::nullopt;
  std::vector<bool> reduced(data.dims.size(), !given);
  for (const int64_t axis : *axes) {
    const auto at = Axis(axis, data.rank());
    if (!at) return std::nullopt;
    reduced[static_cast<size_t>(*at)] = true;
  }
  std::vector<int64_t> dims = data.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (reduced[i]) dims[i] = 1;
  }
  const bool product = node.op == Op::kReduceProd;
  const bool sum = node.op == Op::kReduceSum;
  Folded out = Fill(data.type, dims, [&](const std::vector<int64_t>&) {
    return Element::Number(product                     ? 1
                           : sum                       ? 0
                           : node.op == Op::kReduceMax ? -INFINITY
                                                       : INFINITY);
  });
  if (!out) return out;
  const std::vector<int64_t> strides = Strides(dims);
  std::vector<int64_t> index(dims.size(), 0);
  for (const Element& element : data.elements) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) offset += (reduced[i] ? 0 : index[i]) * strides[i];
    Element& total = out->elements[static_cast<size_t>(offset)];
    if (element.state != Element::kNumber || total.state != Element::kNumber) {
      total = {};
    } else if (product) {
      total.number *= element.number;
    } else if (sum) {
      total.number += element.number;
    } else {
      total.number = node.op == Op::kReduceMax ? std::max(total.number, element.number)
                                               : std::min(total.number, element.number);
    }
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < data.dims[i]) break;
      index[i] = 0;
    }
  }
  if (IntAttribute(*node.proto, "keepdims", 1) == 0) {
    std::vector<int64_t> kept;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!reduced[i]) kept.push_back(dims[i]);
    }
    out->dims = kept;
  }
  return out;
}

Folded FoldRange(const SmallTensor& from, const SmallTensor& to, const SmallTensor& step) {
  const auto a = from.Scalar(), b = to.Scalar(), d = step.Scalar();
  if (!a || !b || !d || *d == 0) return std::nullopt;
  const double length = std::max(0.0, std::ceil((*b - *a) / *d));
  if (!(length <= static_cast<double>(kFoldedElements))) return std::nullopt;
  return Fill(from.type, {static_cast<int64_t>(length)}, [&](const std::vector<int64_t>& index) {
    return Element::Number(*a + static_cast<double>(index[0]) * *d);
  });
}

// Ops that keep the elements and their order: the new shape comes from shape inference.
Folded Reshaped(const Program& program, const Node& node, const SmallTensor& data) {
  const auto inferred = InferShapes(program, node);
  if (inferred.empty() || !inferred[0].has_rank) return std::nullopt;
  SmallTensor out = data;
  out.dims = inferred[0].dims;
  const auto count = ElementCount(out.dims, kFoldedElements);
  if (!count || static_cast<size_t>(*count) != out.elements.size()) return std::nullopt;
  return out;
}

Folded FoldExpand(const SmallTensor& data, const SmallTensor& shape) {
  const auto sizes = shape.Integers();
  if (!sizes) return std::nullopt;
  const auto dims = Broadcast(data.dims, *sizes);
  if (!dims) return std::nullopt;
  return Fill(data.type, *dims,
              [&](const std::vector<int64_t>& index) { return AtBroadcast(data, index); });
}

Folded FoldTranspose(const Node& node, const SmallTensor& data) {
  std::vector<int64_t> order = IntsAttribute(*node.proto, "perm");
  if (order.empty()) {
    for (int64_t i = data.rank(); i-- > 0;) order.push_back(i);
  }
  if (order.size() != data.dims.size()) return std::nullopt;
  std::vector<int64_t> dims, strides = Strides(data.dims), moved;
  for (const int64_t axis : order) {
    if (axis < 0 || axis >= data.rank()) return std::nullopt;
    dims.push_back(data.dims[static_cast<size_t>(axis)]);
    moved.push_back(strides[static_cast<size_t>(axis)]);
  }
  const auto size = static_cast<int64_t>(data.elements.size());
  return Fill(data.type, dims, [&](const std::vector<int64_t>& index) -> Element {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) offset += index[i] * moved[i];
    // `perm` may name an axis twice in a broken file.
    return offset < size ? data.elements[static_cast<size_t>(offset)] : Element{};
  });
}

Folded FoldConstant(const Node& node) {
  for (const auto& attribute : node.proto->attribute()) {
    if (attribute.name() == "value" && attribute.has_t()) return FromProto(attribute.t());
    if (attribute.name() == "value_int")
      return MakeScalar(kInt64, Element::Number(static_cast<double>(attribute.i())));
    if (attribute.name() == "value_float")
      return MakeScalar(kFloat, Element::Number(static_cast<double>(attribute.f())));
    std::vector<Element> list;
    if (attribute.name() == "value_ints" && attribute.ints_size() <= kFoldedElements) {
      for (const int64_t i : attribute.ints())
        list.push_back(Element::Number(static_cast<double>(i)));
      return MakeVector(std::move(list));
    }
    if (attribute.name() == "value_floats" && attribute.floats_size() <= kFoldedElements) {
      for (const float f : attribute.floats())
        list.push_back(Element::Number(static_cast<double>(f)));
      SmallTensor out = MakeVector(std::move(list));
      out.type = kFloat;
      return out;
    }
  }
  return std::nullopt;
}

Folded FoldConstantOfShape(const Node& node, const SmallTensor& shape) {
  const auto dims = shape.Integers();
  if (!dims) return std::nullopt;
  Element value = Element::Number(0);
  int32_t type = kFloat;
  if (const auto* attribute = FindAttribute(*node.proto, "value");
      attribute && attribute->has_t()) {
    const auto given = FromProto(attribute->t());
    if (!given || given->elements.size() != 1) return std::nullopt;
    value = given->elements[0];
    type = given->type;
  }
  return Fill(type, *dims, [&](const std::vector<int64_t>&) { return value; });
}

Folded FoldShape(const Program& program, const Node& node) {
  const ValueId id = node.In(0);
  if (id == kNone || !program.value(id).has_rank) return std::nullopt;
  const Dims& dims = program.value(id).dims;
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t begin = IntAttribute(*node.proto, "start", 0);
  int64_t end = IntAttribute(*node.proto, "end", rank);
  ClampSlice(rank, 1, &begin, &end);
  std::vector<Element> elements;
  for (int64_t i = begin; i < end; ++i)
    elements.push_back(Element::FromDim(dims[static_cast<size_t>(i)]));
  return MakeVector(std::move(elements));
}

std::vector<Folded> FoldSplit(const Program& program, const Node& node, const SmallTensor& data) {
  std::vector<Folded> out(node.out.size());
  const auto axis = Axis(IntAttribute(*node.proto, "axis", 0), data.rank());
  const auto sizes = SplitSizes(program, node);
  if (!axis || !sizes || sizes->size() != out.size()) return out;
  const auto at = static_cast<size_t>(*axis);
  int64_t begin = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    std::vector<int64_t> dims = data.dims;
    dims[at] = (*sizes)[i];
    if (dims[at] < 0 || begin + dims[at] > data.dims[at]) return out;
    out[i] = Fill(data.type, dims, [&](std::vector<int64_t> index) {
      index[at] += begin;
      return AtBroadcast(data, index);
    });
    begin += dims[at];
  }
  return out;
}

Folded FoldOne(const Program& program, const Node& node) {
  const SmallTensor* a = Contents(program, node, 0);
  const SmallTensor* b = Contents(program, node, 1);
  const SmallTensor* c = Contents(program, node, 2);
  switch (node.op) {
    case Op::kConstant:
      return FoldConstant(node);
    case Op::kShape:
      return FoldShape(program, node);
    case Op::kSize: {
      const ValueId id = node.In(0);
      if (id == kNone || !program.value(id).has_rank) return std::nullopt;
      const auto count = ElementCount(program.value(id).dims, INT64_MAX);
      if (!count) return std::nullopt;
      return MakeScalar(kInt64, Element::Number(static_cast<double>(*count)));
    }
    case Op::kConcat:
      return FoldConcat(program, node);
    default:
      break;
  }
  if (a == nullptr) return std::nullopt;
  switch (node.op) {
    case Op::kIdentity:
    case Op::kCast:
    case Op::kNeg:
    case Op::kAbs:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kSqrt:
    case Op::kNot:
      return FoldUnary(node, *a);
    case Op::kReshape:
    case Op::kSqueeze:
    case Op::kUnsqueeze:
    case Op::kFlatten:
      return Reshaped(program, node, *a);
    case Op::kTranspose:
      return FoldTranspose(node, *a);
    case Op::kConstantOfShape:
      return FoldConstantOfShape(node, *a);
    case Op::kSlice:
      return FoldSlice(program, node, *a);
    case Op::kReduceProd:
    case Op::kReduceSum:
    case Op::kReduceMax:
    case Op::kReduceMin:
      return FoldReduce(program, node, *a);
    case Op::kMin:
    case Op::kMax:
      if (node.in.size() == 1) return *a;
      if (node.in.size() > 2) return std::nullopt;
      break;
    default:
      break;
  }
  if (b == nullptr) return std::nullopt;
  switch (node.op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kMod:
    case Op::kPow:
    case Op::kMin:
    case Op::kMax:
    case Op::kEqual:
    case Op::kLess:
    case Op::kLessOrEqual:
    case Op::kGreater:
    case Op::kGreaterOrEqual:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      return FoldBinary(node, *a, *b);
    case Op::kGather:
      return FoldGather(node, *a, *b);
    case Op::kExpand:
      return FoldExpand(*a, *b);
    case Op::kWhere:
      return c ? FoldWhere(*a, *b, *c) : std::nullopt;
    case Op::kRange:
      return c ? FoldRange(*a, *b, *c) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<std::optional<SmallTensor>> Fold(const Program& program, const Node& node) {
  if (node.op == Op::kSplit && Contents(program, node, 0) != nullptr)
    return FoldSplit(program, node, *Contents(program, node, 0));
  std::vector<Folded> out(node.out.size());
  if (!out.empty()) out[0] = FoldOne(program, node);
  return out;
}

std::optional<std::vector<int64_t>> Axes(const Program& program, const Node& node, bool* given) {
  *given = true;
  if (const auto* attribute = FindAttribute(*node.proto, "axes"))
    return std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
  if (node.In(1) == kNone) {
    *given = false;
    return std::vector<int64_t>();
  }
  const SmallTensor* axes = Contents(program, node, 1);
  if (axes == nullptr) return std::nullopt;
  if (axes->elements.empty()) *given = false;  // reductions: none given means all
  return axes->Integers();
}

std::optional<SliceSpec> ReadSlice(const Program& program, const Node& node) {
  SliceSpec spec;
  if (const auto* starts = FindAttribute(*node.proto, "starts")) {  // opset 1 to 9
    spec.begins.assign(starts->ints().begin(), starts->ints().end());
    spec.ends = IntsAttribute(*node.proto, "ends");
    spec.axes = IntsAttribute(*node.proto, "axes");
  } else {
    const SmallTensor* const begins = Contents(program, node, 1);
    const SmallTensor* const ends = Contents(program, node, 2);
    if (begins == nullptr || ends == nullptr) return std::nullopt;
    const auto from = begins->Integers(), to = ends->Integers();
    if (!from || !to) return std::nullopt;
    spec.begins = *from;
    spec.ends = *to;
    for (const size_t i : {size_t{3}, size_t{4}}) {
      if (node.In(i) == kNone) continue;
      const SmallTensor* const list = Contents(program, node, i);
      const auto values = list ? list->Integers() : std::nullopt;
      if (!values) return std::nullopt;
      (i == 3 ? spec.axes : spec.steps) = *values;
    }
  }
  if (spec.axes.empty()) {
    for (size_t i = 0; i < spec.begins.size(); ++i) spec.axes.push_back(static_cast<int64_t>(i));
  }
  if (spec.steps.empty()) spec.steps.assign(spec.begins.size(), 1);
  if (spec.begins.size() != spec.ends.size() || spec.begins.size() != spec.axes.size() ||
      spec.begins.size() != spec.steps.size()) {
    return std::nullopt;
  }
  return spec;
}

void ClampSlice(int64_t dim, int64_t step, int64_t* begin, int64_t* end) {
  const auto clamp = [&](int64_t at, int64_t low, int64_t high) {
    if (at < 0) at += dim;
    return std::min(std::max(at, low), high);
  };
  if (step > 0) {
    *begin = clamp(*begin, 0, dim);
    *end = clamp(*end, 0, dim);
  } else {
    *begin = clamp(*begin, 0, dim - 1);
    // Far below: past the first element. -1 means the last one.
    *end = *end < -dim ? -1 : clamp(*end, -1, dim - 1);
  }
}

int64_t SliceLength(int64_t begin, int64_t end, int64_t step) {
  if (step == 0 || step == INT64_MIN) return 0;
  const int64_t span = step > 0 ? end - begin : begin - end;
  const int64_t size = step > 0 ? step : -step;
  return span <= 0 ? 0 : 1 + (span - 1) / size;
}

std::optional<std::vector<int64_t>> SplitSizes(const Program& program, const Node& node) {
  if (const auto* attribute = FindAttribute(*node.proto, "split"))
    return std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
  if (node.In(1) != kNone) {
    const SmallTensor* const sizes = Contents(program, node, 1);
    return sizes ? sizes->Integers() : std::nullopt;
  }
  const ValueId id = node.In(0);
  if (id == kNone || !program.value(id).has_rank || node.out.empty()) return std::nullopt;
  const Dims& dims = program.value(id).dims;
  const auto axis = Axis(IntAttribute(*node.proto, "axis", 0), static_cast<int64_t>(dims.size()));
  if (!axis || dims[static_cast<size_t>(*axis)] < 0) return std::nullopt;
  const int64_t size = dims[static_cast<size_t>(*axis)];
  const auto parts = static_cast<int64_t>(node.out.size());
  const int64_t each = (size + parts - 1) / parts;
  std::vector<int64_t> sizes(node.out.size(), each);
  sizes.back() = size - each * (parts - 1);
  if (sizes.back() < 0) return std::nullopt;
  return sizes;
}

}  // namespace mk::scan
