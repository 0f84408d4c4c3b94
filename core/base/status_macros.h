// The two macros over absl::Status that Debian's Abseil lacks.
#ifndef MERGEKERNEL_CORE_BASE_STATUS_MACROS_H_
#define MERGEKERNEL_CORE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the function when `expr` (an absl::Status) is not OK.
#define MK_RETURN_IF_ERROR(expr)             \
  do {                                       \
    ::absl::Status mk_status_ = (expr);      \
    if (!mk_status_.ok()) return mk_status_; \
  } while (false)

// MK_ASSIGN_OR_RETURN(auto x, F()): declares or sets x from an absl::StatusOr, or returns its
// status.
#define MK_ASSIGN_OR_RETURN(lhs, expr) \
  MK_ASSIGN_OR_RETURN_IMPL(MK_MACRO_CONCAT(mk_status_or_, __LINE__), lhs, expr)
#define MK_ASSIGN_OR_RETURN_IMPL(value, lhs, expr) \
  auto value = (expr);                             \
  if (!value.ok()) return value.status();          \
  lhs = *std::move(value)
#define MK_MACRO_CONCAT(a, b) MK_MACRO_CONCAT_INNER(a, b)
#define MK_MACRO_CONCAT_INNER(a, b) a##b

#endif  // MERGEKERNEL_CORE_BASE_STATUS_MACROS_H_
