// Errors inside packs and kernels: a gRPC code and a message, without Abseil (a pack carries none).
#ifndef MERGEKERNEL_CORE_SDK_STATUS_H_
#define MERGEKERNEL_CORE_SDK_STATUS_H_

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "core/abi/mk_pack.h"

namespace mk {

// A code numerically equal to gRPC's, and a message that names who, the observed value and the
// broken bound.
class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(mk_status code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == MK_OK; }
  mk_status code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  mk_status code_ = MK_OK;
  std::string message_;
};

inline Status Ok() { return {}; }
inline Status InvalidArgument(std::string m) { return {MK_INVALID_ARGUMENT, std::move(m)}; }
inline Status FailedPrecondition(std::string m) { return {MK_FAILED_PRECONDITION, std::move(m)}; }
inline Status ResourceExhausted(std::string m) { return {MK_RESOURCE_EXHAUSTED, std::move(m)}; }
inline Status Unimplemented(std::string m) { return {MK_UNIMPLEMENTED, std::move(m)}; }
inline Status NotFound(std::string m) { return {MK_NOT_FOUND, std::move(m)}; }
inline Status Internal(std::string m) { return {MK_INTERNAL, std::move(m)}; }
inline Status Cancelled(std::string m) { return {MK_CANCELLED, std::move(m)}; }

// A value or a Status that is not OK. REQUIRES ok() before value access; a breach ends the process
// with the message.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { return Checked(); }
  const T& operator*() const { return const_cast<Result*>(this)->Checked(); }
  T* operator->() { return &Checked(); }

 private:
  T& Checked() {
    if (!value_) {
      std::fprintf(stderr, "Result read without a value: %s\n", status_.message().c_str());
      std::abort();
    }
    return *value_;
  }

  std::optional<T> value_;
  Status status_;
};

}  // namespace mk

// Returns from the function when `expr` (an mk::Status) is not OK.
#define MK_TRY(expr)                               \
  do {                                             \
    ::mk::Status mk_try_status = (expr);           \
    if (!mk_try_status.ok()) return mk_try_status; \
  } while (false)

// MK_TRY_ASSIGN(auto x, F()): declares x from an mk::Result, or returns its Status.
#define MK_TRY_CONCAT_INNER(a, b) a##b
#define MK_TRY_CONCAT(a, b) MK_TRY_CONCAT_INNER(a, b)
#define MK_TRY_ASSIGN(lhs, expr) MK_TRY_ASSIGN_IMPL(MK_TRY_CONCAT(mk_result_, __LINE__), lhs, expr)
#define MK_TRY_ASSIGN_IMPL(result, lhs, expr) \
  auto result = (expr);                       \
  if (!result.ok()) return result.status();   \
  lhs = std::move(*result)

#endif  // MERGEKERNEL_CORE_SDK_STATUS_H_
