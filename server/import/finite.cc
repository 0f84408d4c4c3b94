#include "server/import/finite.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/half.h"

namespace mk {
namespace {

// Elements looked at before the verdict is read. A constant, so that the compiler makes vectors of
// the inner loop.
constexpr int64_t kBlock = 1024;

// `kExponent`: the bits that are all ones in NaN and infinity and nowhere else; `kMagnitude`: all
// bits but the sign.
template <typename Bits, Bits kExponent, Bits kMagnitude>
bool BlockIsFinite(const char* data, bool* all_zero) {
  Bits bits[kBlock];
  std::memcpy(bits, data, sizeof bits);
  Bits bad = 0, any = 0;
  for (int64_t i = 0; i < kBlock; ++i) {
    bad = static_cast<Bits>(bad | ((bits[i] & kExponent) == kExponent ? 1 : 0));
    any = static_cast<Bits>(any | (bits[i] & kMagnitude));
  }
  if (any != 0) *all_zero = false;
  return bad == 0;
}

template <typename Bits, typename Decode>
int64_t OneByOne(const char* data, int64_t begin, int64_t end, Decode decode, std::string* value,
                 bool* all_zero) {
  for (int64_t i = begin; i < end; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * static_cast<int64_t>(sizeof bits), sizeof bits);
    const auto number = decode(bits);
    if (!std::isfinite(static_cast<float>(number))) {
      *value = absl::StrCat(static_cast<double>(number));
      return i;
    }
    if (number != 0) *all_zero = false;
  }
  return -1;
}

template <typename Bits, Bits kExponent, Bits kMagnitude, typename Decode>
int64_t InBlocks(const char* data, int64_t count, Decode decode, std::string* value,
                 bool* all_zero) {
  int64_t at = 0;
  for (; at + kBlock <= count; at += kBlock) {
    const char* block = data + at * static_cast<int64_t>(sizeof(Bits));
    if (BlockIsFinite<Bits, kExponent, kMagnitude>(block, all_zero)) continue;
    return OneByOne<Bits>(data, at, at + kBlock, decode, value, all_zero);
  }
  return OneByOne<Bits>(data, at, count, decode, value, all_zero);
}

float FloatOf(uint32_t bits) {
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

double DoubleOf(uint64_t bits) {
  double number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

}  // namespace

bool IsFloatingPoint(StoredType type) {
  return type == StoredType::kF32 || type == StoredType::kF16 || type == StoredType::kBF16 ||
         type == StoredType::kF64;
}

int64_t FirstNotFinite(StoredType type, const char* data, int64_t count, std::string* value,
                       bool* all_zero) {
  if (type == StoredType::kF16) {
    return InBlocks<uint16_t, 0x7c00, 0x7fff>(data, count, HalfToFloat, value, all_zero);
  }
  if (type == StoredType::kBF16) {
    return InBlocks<uint16_t, 0x7f80, 0x7fff>(data, count, BFloat16ToFloat, value, all_zero);
  }
  if (type == StoredType::kF64) {
    return OneByOne<uint64_t>(data, 0, count, DoubleOf, value, all_zero);
  }
  return InBlocks<uint32_t, 0x7f800000, 0x7fffffff>(data, count, FloatOf, value, all_zero);
}

}  // namespace mk
