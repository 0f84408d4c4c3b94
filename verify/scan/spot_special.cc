// S3: complex numbers, Fourier operators, and rotary embedding in the real-valued spellings that
// exporters write:
//   turned copy   y = x * cos + R(x) * sin, where R swaps the two halves of each pair and negates
//   one: by
//                 Concat(Neg(piece), piece), by a Gather with a pairwise permutation, or by a
//                 MatMul with a signed permutation matrix
//   product       re = a * c - b * s, im = a * s + b * c, put together again by a Concat; a and b
//   are pieces of one tensor 2 x 2         y = F0 * x0 + F1 * x1, where F is a tensor of 2 x 2
//   rotations and x0, x1 are the halves of pairs
// One structure is one rotated tensor, however many nodes it takes.
#include <algorithm>
#include <cmath>
#include <set>

#include "verify/scan/findings.h"
#include "verify/scan/walk.h"

namespace mk::scan {
namespace {

constexpr int kUsers = 64;  // users of a value that are looked at: a real rotation has four

// A signed permutation matrix that negates some and keeps some: a rotation by quarter turns.
bool IsSignedPermutation(const SmallTensor& matrix) {
  if (matrix.rank() != 2 || matrix.dims[0] != matrix.dims[1] || matrix.dims[0] < 2) return false;
  const auto size = static_cast<size_t>(matrix.dims[0]);
  std::vector<int> in_column(size, 0);
  int negative = 0, moved = 0;
  for (size_t r = 0; r < size; ++r) {
    int in_row = 0;
    for (size_t c = 0; c < size; ++c) {
      const Element& element = matrix.elements[r * size + c];
      if (element.state != Element::kNumber) return false;
      if (element.number == 0) continue;
      if (std::fabs(element.number) != 1) return false;
      ++in_row, ++in_column[c];
      negative += element.number < 0;
      moved += r != c;
    }
    if (in_row != 1) return false;
  }
  for (const int count : in_column) {
    if (count != 1) return false;
  }
  return negative > 0 && negative < static_cast<int>(size) && moved == static_cast<int>(size);
}

// An index list that swaps elements in pairs.
bool IsPairSwap(const SmallTensor& index) {
  if (index.rank() != 1 || index.elements.size() < 4) return false;
  const auto list = index.Integers();
  if (!list) return false;
  const auto size = static_cast<int64_t>(list->size());
  for (int64_t i = 0; i < size; ++i) {
    const int64_t to = (*list)[static_cast<size_t>(i)];
    if (to < 0 || to >= size || to == i || (*list)[static_cast<size_t>(to)] != i) return false;
  }
  return true;
}

class Special {
 public:
  Special(const Program& program, Findings* findings) : p_(program), findings_(*findings) {}

  void Run() {
    Complex();
    for (size_t i = 0; i < p_.nodes.size(); ++i) {
      const Node& node = p_.nodes[i];
      if (node.is_const) continue;
      const auto id = static_cast<NodeId>(i);
      if (node.op == Op::kDFT || node.op == Op::kSTFT) {
        findings_.AddSite(findings_.Add(kS3, "Fourier transform"), id);
      } else if (node.op == Op::kRotaryEmbedding) {
        findings_.AddSite(findings_.Add(kS3, "rotary embedding", "as an operator of its own"), id);
      } else if (node.op == Op::kAdd || node.op == Op::kSub) {
        if (!TurnedCopy(id) && !Product(id)) TwoByTwo(id);
      }
    }
  }

 private:
  void Complex();
  bool TurnedCopy(NodeId id);
  bool Product(NodeId id);
  bool TwoByTwo(NodeId id);
  // The tensor that `id` is a quarter-turned copy of, or kNone; `how` says in which spelling.
  ValueId TurnOf(ValueId id, const char** how);
  ValueId NegatedOf(ValueId id);
  bool PutTogether(ValueId re, ValueId im, const Piece& piece);
  const Node* Mul(ValueId id) const {
    return id == kNone ? nullptr : Makes(p_, Resolve(p_, id), Op::kMul);
  }

  const Program& p_;
  Findings& findings_;
};

void Special::Complex() {
  Structure* structure = nullptr;
  for (size_t i = 0; i < p_.values.size(); ++i) {
    if (!IsComplex(p_.values[i].type)) continue;
    if (!structure) structure = findings_.Add(kS3, "complex numbers", "tensors of a complex type");
    findings_.AddTensor(structure, static_cast<ValueId>(i));
  }
}

// -x as Neg, or as a product with the constant -1.
ValueId Special::NegatedOf(ValueId id) {
  if (const Node* neg = BehindLayout(p_, id, Op::kNeg)) return neg->In(0);
  const Node* mul = BehindLayout(p_, id, Op::kMul);
  if (!mul) return kNone;
  for (size_t i = 0; i < 2; ++i) {
    const SmallTensor* factor = Contents(p_, *mul, i);
    if (factor && factor->Scalar() && *factor->Scalar() == -1) return mul->In(1 - i);
  }
  return kNone;
}

ValueId Special::TurnOf(ValueId id, const char** how) {
  if (id == kNone) return kNone;
  const ValueId laid_out = SkipLayout(p_, id);
  const Node* node = p_.ProducerOf(laid_out);
  if (!node) return kNone;
  if (node->op == Op::kConcat && node->in.size() == 2) {
    for (size_t i = 0; i < 2; ++i) {
      const ValueId inner = NegatedOf(node->In(i));
      if (inner == kNone || NegatedOf(node->In(1 - i)) != kNone) continue;
      const auto a = FindPiece(p_, inner), b = FindPiece(p_, node->In(1 - i));
      if (!a || !b || a->axis != b->axis) continue;
      if (SkipLayout(p_, a->whole) != SkipLayout(p_, b->whole)) continue;
      // Halves of pairs: different places of one axis.
      if (a->begin == b->begin && a->node == b->node) continue;
      *how = "Concat of a negated and a plain half";
      return SkipLayout(p_, a->whole);
    }
  }
  if (node->op == Op::kGather && node->In(0) != kNone && p_.IsDataValue(node->In(0))) {
    const SmallTensor* index = Contents(p_, *node, 1);
    if (index && IsPairSwap(*index)) {
      *how = "Gather that swaps the halves of pairs";
      return SkipLayout(p_, node->In(0));
    }
  }
  if (node->op == Op::kMatMul && node->In(0) != kNone && node->In(1) != kNone) {
    const Value& matrix = p_.value(node->In(1));
    if (!matrix.IsConst() || matrix.dims.size() != 2 || matrix.dims[0] != matrix.dims[1])
      return kNone;
    if (matrix.data ? IsSignedPermutation(*matrix.data)
                    : matrix.dims[0] > 1 && matrix.dims[0] <= 512) {
      *how = matrix.data
                 ? "MatMul with a signed permutation"
                 : "possible rotary: MatMul with a square constant whose contents were not read";
      return SkipLayout(p_, node->In(0));
    }
  }
  return kNone;
}

bool Special::TurnedCopy(NodeId id) {
  const Node& node = p_.node(id);
  const Node* products[] = {Mul(node.In(0)), Mul(node.In(1))};
  if (!products[0] || !products[1]) return false;
  for (size_t side = 0; side < 2; ++side) {
    for (size_t i = 0; i < 2; ++i) {
      const char* how = "";
      const ValueId whole = TurnOf(products[side]->In(i), &how);
      if (whole == kNone) continue;
      for (size_t k = 0; k < 2; ++k) {
        const ValueId plain = products[1 - side]->In(k);
        if (plain == kNone || SkipLayout(p_, plain) != whole) continue;
        findings_.AddSite(findings_.Add(kS3, "rotary embedding", how), id);
        return true;
      }
    }
  }
  return false;
}

// Whether `re` and `im` are put together again as pairs or halves of one tensor.
bool Special::PutTogether(ValueId re, ValueId im, const Piece& piece) {
  std::set<NodeId> of_re;
  const auto pass = [&](NodeId n, ValueId) { return IsLayout(p_.node(n).op); };
  const auto is_join = [&](NodeId n) { return p_.node(n).op == Op::kConcat; };
  Forward(
      p_, re, 32,
      [&](NodeId n, ValueId) {
        if (is_join(n)) of_re.insert(n);
        return false;
      },
      pass);
  NodeId join = kNone;
  Forward(
      p_, im, 32,
      [&](NodeId n, ValueId) {
        if (of_re.count(n)) join = n;
        return join != kNone;
      },
      pass);
  if (join == kNone) return false;
  // One pair alone is a point in the plane (a rotated box), not an embedding.
  const Value& whole = p_.value(piece.whole);
  const bool is_pair_axis = whole.has_rank && piece.axis >= 0 &&
                            piece.axis < static_cast<int64_t>(whole.dims.size()) &&
                            whole.dims[static_cast<size_t>(piece.axis)] == 2;
  if (!is_pair_axis) return piece.length != 1 || piece.step != 1;
  // Pairs: the pair axis is merged with its neighbour again, here or behind other layout ops.
  return Forward(
      p_, p_.node(join).out.empty() ? kNone : p_.node(join).out[0], 16,
      [&](NodeId n, ValueId) {
        return p_.node(n).op == Op::kReshape || p_.node(n).op == Op::kFlatten;
      },
      pass);
}

bool Special::Product(NodeId id) {
  // a * c - b * s, also as a * c + -(b * s).
  const Node& minus = p_.node(id);
  const Node *ac = Mul(minus.In(0)), *bs = Mul(minus.In(1));
  if (minus.op == Op::kAdd) {
    for (size_t i = 0; i < 2; ++i) {
      const Node* neg = Makes(p_, minus.In(i), Op::kNeg);
      if (neg) bs = Mul(neg->In(0)), ac = Mul(minus.In(1 - i));
    }
    if (!Makes(p_, minus.In(0), Op::kNeg) && !Makes(p_, minus.In(1), Op::kNeg)) return false;
  }
  if (!ac || !bs) return false;
  for (size_t i = 0; i < 4; ++i) {
    const ValueId a = ac->In(i & 1), c = ac->In(1 - (i & 1));
    const ValueId b = bs->In(i >> 1), s = bs->In(1 - (i >> 1));
    if (a == kNone || b == kNone || c == kNone || s == kNone) continue;
    const auto pa = FindPiece(p_, a), pb = FindPiece(p_, b);
    if (!pa || !pb || pa->axis != pb->axis) continue;
    if (SkipLayout(p_, pa->whole) != SkipLayout(p_, pb->whole) ||
        (pa->begin == pb->begin && pa->node == pb->node))
      continue;
    if (!p_.IsDataValue(pa->whole)) continue;
    // Look for the twin a * s + b * c.
    NodeId twin = kNone;
    const ValueId plain_a = Resolve(p_, a), plain_b = Resolve(p_, b);
    const ValueId root_c = SkipLayout(p_, c), root_s = SkipLayout(p_, s);
    const auto is_product = [&](const Node* mul, ValueId x, ValueId root) {
      for (size_t k = 0; mul && k < 2; ++k) {
        if (mul->In(k) != kNone && mul->In(1 - k) != kNone && Resolve(p_, mul->In(k)) == x &&
            SkipLayout(p_, mul->In(1 - k)) == root) {
          return true;
        }
      }
      return false;
    };
    int looked = 0;
    for (const NodeId user : p_.value(plain_a).consumers) {
      if (++looked > kUsers) break;
      const Node& mul = p_.node(user);
      if (mul.op != Op::kMul || mul.out.empty() || !is_product(&mul, plain_a, root_s)) continue;
      for (const NodeId sum : p_.value(mul.out[0]).consumers) {
        if (++looked > kUsers) break;
        const Node& add = p_.node(sum);
        if (add.op != Op::kAdd || add.out.empty()) continue;
        for (size_t k = 0; k < 2; ++k) {
          if (is_product(Mul(add.In(k)), plain_b, root_c)) twin = sum;
        }
      }
    }
    if (twin == kNone || minus.out.empty()) continue;
    if (!PutTogether(minus.out[0], p_.node(twin).out[0], *pa)) continue;
    Structure* structure =
        findings_.Add(kS3, "rotary embedding", "product of complex numbers in their real parts");
    findings_.AddSite(structure, id);
    return true;
  }
  return false;
}

bool Special::TwoByTwo(NodeId id) {
  const Node& node = p_.node(id);
  if (node.op != Op::kAdd) return false;
  const Node *m0 = Mul(node.In(0)), *m1 = Mul(node.In(1));
  if (!m0 || !m1) return false;
  const auto is_matrix = [&](const Piece& piece) {
    const Value& whole = p_.value(piece.whole);
    const size_t rank = whole.dims.size();
    return whole.has_rank && rank >= 3 && whole.dims[rank - 1] == 2 && whole.dims[rank - 2] == 2 &&
           piece.axis == static_cast<int64_t>(rank) - 1;
  };
  const auto is_pair = [&](const Piece& piece) {
    const Value& whole = p_.value(piece.whole);
    return whole.has_rank && piece.axis >= 0 &&
           piece.axis < static_cast<int64_t>(whole.dims.size()) &&
           whole.dims[static_cast<size_t>(piece.axis)] == 2 && whole.dims.size() >= 4;
  };
  for (size_t i = 0; i < 4; ++i) {
    const auto f0 = FindPiece(p_, m0->In(i & 1)), x0 = FindPiece(p_, m0->In(1 - (i & 1)));
    const auto f1 = FindPiece(p_, m1->In(i >> 1)), x1 = FindPiece(p_, m1->In(1 - (i >> 1)));
    if (!f0 || !f1 || !x0 || !x1 || !is_matrix(*f0) || !is_pair(*x0)) continue;
    if (f0->whole != f1->whole || x0->whole != x1->whole || f0->begin == f1->begin ||
        x0->begin == x1->begin)
      continue;
    findings_.AddSite(findings_.Add(kS3, "rotary embedding", "product with 2 x 2 rotations"), id);
    return true;
  }
  return false;
}

}  // namespace

void FindSpecial(const Program& program, Findings* findings) { Special(program, findings).Run(); }

}  // namespace mk::scan
