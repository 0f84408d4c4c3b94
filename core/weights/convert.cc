#include "core/weights/convert.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/dtype.h"
#include "core/base/half.h"

namespace mk {
namespace {

// What a stored type is in the ABI; INVALID where the ABI has none.
mk_dtype SameDtype(StoredType type) {
  switch (type) {
    case StoredType::kF64:
      return MK_DTYPE_FP64;
    case StoredType::kF32:
      return MK_DTYPE_FP32;
    case StoredType::kF16:
      return MK_DTYPE_FP16;
    case StoredType::kBF16:
      return MK_DTYPE_BF16;
    case StoredType::kI64:
      return MK_DTYPE_INT64;
    case StoredType::kI32:
      return MK_DTYPE_INT32;
    case StoredType::kI16:
      return MK_DTYPE_INT16;
    case StoredType::kI8:
      return MK_DTYPE_INT8;
    case StoredType::kU64:
      return MK_DTYPE_UINT64;
    case StoredType::kU32:
      return MK_DTYPE_UINT32;
    case StoredType::kU16:
      return MK_DTYPE_UINT16;
    case StoredType::kU8:
      return MK_DTYPE_UINT8;
    case StoredType::kBool:
      return MK_DTYPE_BOOL;
    case StoredType::kF8E4M3:
    case StoredType::kF8E5M2:
    case StoredType::kF8E8M0:
    case StoredType::kF4:
      return MK_DTYPE_INVALID;
  }
  return MK_DTYPE_INVALID;
}

// Reads elements of Stored, turns each to double for the check and to Out for the destination.
template <typename Stored, typename Out, typename Decode>
int64_t Loop(const char* source, int64_t count, char* out, std::string* value, Decode decode) {
  for (int64_t i = 0; i < count; ++i) {
    Stored raw;
    std::memcpy(&raw, source + i * static_cast<int64_t>(sizeof raw), sizeof raw);
    const auto number = decode(raw);
    const Out result = static_cast<Out>(number);
    if (!std::isfinite(static_cast<double>(result))) {
      *value = absl::StrCat(static_cast<double>(number));
      return i;
    }
    std::memcpy(out + i * static_cast<int64_t>(sizeof result), &result, sizeof result);
  }
  return -1;
}

// A 16-bit float kept as it is: only checked.
template <typename Decode>
int64_t Keep16(const char* source, int64_t count, char* out, std::string* value, Decode decode) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t raw;
    std::memcpy(&raw, source + i * 2, 2);
    if (!std::isfinite(decode(raw))) {
      *value = absl::StrCat(decode(raw));
      return i;
    }
    std::memcpy(out + i * 2, &raw, 2);
  }
  return -1;
}

}  // namespace

float Float8E4M3ToFloat(uint8_t bits) {
  const int exponent = bits >> 3 & 0xf, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return std::nanf("");
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), -9)
                              : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return bits & 0x80 ? -magnitude : magnitude;
}

bool Converts(StoredType from, mk_dtype to) {
  if (to == MK_DTYPE_FP32) {
    return from == StoredType::kF64 || from == StoredType::kF32 || from == StoredType::kF16 ||
           from == StoredType::kBF16;
  }
  return to != MK_DTYPE_INVALID && SameDtype(from) == to;
}

int64_t ConvertElements(StoredType from, mk_dtype to, const char* source, int64_t count, char* out,
                        std::string* value) {
  const auto same = [](auto x) { return x; };
  if (to == MK_DTYPE_FP32 && from == StoredType::kF64) {
    return Loop<double, float>(source, count, out, value, same);
  }
  if (from == StoredType::kF64) return Loop<double, double>(source, count, out, value, same);
  if (from == StoredType::kF32) return Loop<float, float>(source, count, out, value, same);
  if (from == StoredType::kF16) {
    return to == MK_DTYPE_FP32 ? Loop<uint16_t, float>(source, count, out, value, HalfToFloat)
                               : Keep16(source, count, out, value, HalfToFloat);
  }
  if (from == StoredType::kBF16) {
    return to == MK_DTYPE_FP32 ? Loop<uint16_t, float>(source, count, out, value, BFloat16ToFloat)
                               : Keep16(source, count, out, value, BFloat16ToFloat);
  }
  if (from == StoredType::kBool) {
    for (int64_t i = 0; i < count; ++i) {
      if (source[i] != 0 && source[i] != 1) {
        *value = absl::StrCat(static_cast<int>(static_cast<uint8_t>(source[i])), " as BOOL");
        return i;
      }
    }
  }
  std::memcpy(out, source, static_cast<size_t>(count) * DtypeSize(to));
  return -1;
}

}  // namespace mk
