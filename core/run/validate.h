// The pure judgement of a request against a signature: everything is checked before anything is
// taken.
#ifndef MERGEKERNEL_CORE_RUN_VALIDATE_H_
#define MERGEKERNEL_CORE_RUN_VALIDATE_H_

#include "absl/status/status.h"
#include "core/run/request.h"

namespace mk {

// INVALID_ARGUMENT naming the tensor, the observed value and the rule, for: unknown, duplicate or
// missing inputs; dtype; rank; negative dims (-1 included); dims against the signature's; products
// that overflow; byte sizes (expected N bytes, got M); BYTES whose packed lengths do not add up to
// exactly the element count and size; unknown or duplicate outputs. On success reorders
// `request.inputs` to the signature's order.
absl::Status ValidateRequest(const Signature& signature, InferRequest& request);

// Checks BYTES content: `count` elements of (uint32 length, bytes) that fill [data, data + size)
// exactly.
absl::Status ValidatePackedBytes(const std::string& tensor, const void* data, uint64_t size_bytes,
                                 uint64_t count);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_RUN_VALIDATE_H_
