// Arithmetic on sizes that come from outside: the result, or nothing when it does not fit.
#ifndef MERGEKERNEL_CORE_BASE_CHECKED_H_
#define MERGEKERNEL_CORE_BASE_CHECKED_H_

#include <cstdint>
#include <optional>

namespace mk {

inline std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

inline std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// The product of `dims` (an iterable of int64_t), or nothing when one is negative or the product
// passes INT64_MAX. A zero dim makes 0 only when the other dims multiply without overflow, so that
// no shape is both legal and unrepresentable.
template <typename Dims>
std::optional<uint64_t> CheckedProduct(const Dims& dims) {
  uint64_t product = 1;
  bool zero = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      zero = true;
      continue;
    }
    const auto next = CheckedMul(product, static_cast<uint64_t>(dim));
    if (!next || *next > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    product = *next;
  }
  return zero ? 0 : product;
}

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_CHECKED_H_
