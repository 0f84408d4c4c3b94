// The operators by number: every one of the default domain up to the newest opset known here, and
// two that stand for the rest.
#ifndef MERGEKERNEL_VERIFY_SCAN_OPS_H_
#define MERGEKERNEL_VERIFY_SCAN_OPS_H_

#include <cstdint>
#include <string_view>

namespace mk::scan {

constexpr int64_t kNewestOpset = 28;

enum class Op : uint16_t {
  kForeign,   // another domain: what it does is not known
  kUnlisted,  // default domain, but no operator of it up to kNewestOpset
  kContrib,   // com.microsoft or ai.onnx.ml: known to be dense and feed-forward
#define MK_OP(name, since) k##name,
#include "verify/scan/ops.inc"
#undef MK_OP
};

// The operator `type` of `domain`. "" and "ai.onnx" are the default domain.
Op FindOp(std::string_view domain, std::string_view type);
// The opset that brought a default-domain operator; 0 for the others.
int64_t SinceVersion(Op op);
const char* OpName(Op op);

bool IsDefaultDomain(std::string_view domain);

// Element by element over its inputs, with broadcasting (Add, Mul, Where, Clip, Relu, Cast, ...).
bool IsElementwise(Op op);
// Changes only how elements are laid out (Reshape, Transpose, Squeeze, Unsqueeze, Flatten,
// Identity, Cast, CastLike, Expand).
bool IsLayout(Op op);
// Takes a part of its first input (Slice, Split, Gather with one index is judged by its caller).
bool IsReduction(Op op);

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_OPS_H_
