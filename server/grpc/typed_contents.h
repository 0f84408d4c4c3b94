// InferTensorContents to the packed form that packs take.
#ifndef MERGEKERNEL_SERVER_GRPC_TYPED_CONTENTS_H_
#define MERGEKERNEL_SERVER_GRPC_TYPED_CONTENTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/abi/mk_pack.h"
#include "core/run/host_pool.h"

namespace mk {

// `parts`: the bytes of each occurrence of the `contents` message, which the wire format merges.
// `input` is for messages.
absl::StatusOr<HostBlock> PackTypedContents(const std::string& input, mk_dtype dtype,
                                            const std::vector<std::string_view>& parts,
                                            HostPool& pool);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_GRPC_TYPED_CONTENTS_H_
