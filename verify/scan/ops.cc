#include "verify/scan/ops.h"

#include <unordered_map>

namespace mk::scan {
namespace {

struct Entry {
  std::string_view name;
  int64_t since;
};

constexpr Entry kEntries[] = {
    {"(foreign)", 0},
    {"(unlisted)", 0},
    {"(contrib)", 0},
#define MK_OP(name, since) {#name, since},
#include "verify/scan/ops.inc"
#undef MK_OP
};

// What ONNX Runtime's optimiser and quantiser leave behind and what scikit-learn exporters write:
// dense arithmetic, none of it one of the blind spots. RotaryEmbedding and the Fourier operators of
// com.microsoft are found by name below.
constexpr std::string_view kContribDense[] = {
    "Attention",
    "BiasAdd",
    "BiasGelu",
    "BiasSoftmax",
    "BiasSplitGelu",
    "DynamicQuantizeMatMul",
    "EmbedLayerNormalization",
    "FastGelu",
    "FusedConv",
    "FusedGemm",
    "FusedMatMul",
    "FusedMatMulActivation",
    "Gelu",
    "GemmFastGelu",
    "GroupNorm",
    "Inverse",
    "MatMulInteger16",
    "MatMulIntegerToFloat",
    "MatMulNBits",
    "MultiHeadAttention",
    "NhwcConv",
    "PackedAttention",
    "QAttention",
    "QEmbedLayerNormalization",
    "QLinearAdd",
    "QLinearAveragePool",
    "QLinearConcat",
    "QLinearGlobalAveragePool",
    "QLinearLeakyRelu",
    "QLinearMul",
    "QLinearSigmoid",
    "QLinearSoftmax",
    "QuickGelu",
    "SimplifiedLayerNormalization",
    "SkipGroupNorm",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
    "TransposeMatMul",
};

const std::unordered_map<std::string_view, Op>& Table() {
  static const auto* const table = [] {
    auto* map = new std::unordered_map<std::string_view, Op>;
    for (uint16_t i = 3; i < sizeof kEntries / sizeof kEntries[0]; ++i)
      map->emplace(kEntries[i].name, static_cast<Op>(i));
    return map;
  }();
  return *table;
}

}  // namespace

bool IsDefaultDomain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

Op FindOp(std::string_view domain, std::string_view type) {
  if (IsDefaultDomain(domain)) {
    const auto found = Table().find(type);
    return found == Table().end() ? Op::kUnlisted : found->second;
  }
  if (domain == "ai.onnx.ml") return Op::kContrib;
  if (domain == "com.microsoft") {
    if (type == "RotaryEmbedding") return Op::kRotaryEmbedding;
    if (type == "Rfft" || type == "Irfft") return Op::kDFT;
    if (type == "GridSample") return Op::kGridSample;
    for (const std::string_view dense : kContribDense) {
      if (type == dense) return Op::kContrib;
    }
  }
  return Op::kForeign;
}

int64_t SinceVersion(Op op) { return kEntries[static_cast<size_t>(op)].since; }
const char* OpName(Op op) { return kEntries[static_cast<size_t>(op)].name.data(); }

bool IsElementwise(Op op) {
  switch (op) {
    case Op::kAbs:
    case Op::kAcos:
    case Op::kAcosh:
    case Op::kAdd:
    case Op::kAnd:
    case Op::kAsin:
    case Op::kAsinh:
    case Op::kAtan:
    case Op::kAtanh:
    case Op::kBitCast:
    case Op::kBitShift:
    case Op::kBitwiseAnd:
    case Op::kBitwiseNot:
    case Op::kBitwiseOr:
    case Op::kBitwiseXor:
    case Op::kCast:
    case Op::kCastLike:
    case Op::kCeil:
    case Op::kCelu:
    case Op::kClip:
    case Op::kCos:
    case Op::kCosh:
    case Op::kDequantizeLinear:
    case Op::kDiv:
    case Op::kDropout:
    case Op::kElu:
    case Op::kEqual:
    case Op::kErf:
    case Op::kExp:
    case Op::kFloor:
    case Op::kGelu:
    case Op::kGreater:
    case Op::kGreaterOrEqual:
    case Op::kHardSigmoid:
    case Op::kHardSwish:
    case Op::kIdentity:
    case Op::kIsInf:
    case Op::kIsNaN:
    case Op::kLeakyRelu:
    case Op::kLess:
    case Op::kLessOrEqual:
    case Op::kLog:
    case Op::kMax:
    case Op::kMean:
    case Op::kMin:
    case Op::kMish:
    case Op::kMod:
    case Op::kMul:
    case Op::kNeg:
    case Op::kNot:
    case Op::kOr:
    case Op::kPRelu:
    case Op::kPow:
    case Op::kQuantizeLinear:
    case Op::kReciprocal:
    case Op::kRelu:
    case Op::kRound:
    case Op::kSelu:
    case Op::kShrink:
    case Op::kSigmoid:
    case Op::kSign:
    case Op::kSin:
    case Op::kSinh:
    case Op::kSoftplus:
    case Op::kSoftsign:
    case Op::kSqrt:
    case Op::kSub:
    case Op::kSum:
    case Op::kSwish:
    case Op::kTan:
    case Op::kTanh:
    case Op::kThresholdedRelu:
    case Op::kWhere:
    case Op::kXor:
      return true;
    default:
      return false;
  }
}

bool IsLayout(Op op) {
  switch (op) {
    case Op::kReshape:
    case Op::kTranspose:
    case Op::kSqueeze:
    case Op::kUnsqueeze:
    case Op::kFlatten:
    case Op::kIdentity:
    case Op::kCast:
    case Op::kCastLike:
    case Op::kExpand:
    case Op::kDropout:
      return true;
    default:
      return false;
  }
}

bool IsReduction(Op op) {
  switch (op) {
    case Op::kReduceL1:
    case Op::kReduceL2:
    case Op::kReduceLogSum:
    case Op::kReduceLogSumExp:
    case Op::kReduceMax:
    case Op::kReduceMean:
    case Op::kReduceMin:
    case Op::kReduceProd:
    case Op::kReduceSum:
    case Op::kReduceSumSquare:
      return true;
    default:
      return false;
  }
}

}  // namespace mk::scan
