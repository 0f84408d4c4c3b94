// The manifest of a pack: read and judged before any of its code.
#ifndef MERGEKERNEL_CORE_LOADER_MANIFEST_H_
#define MERGEKERNEL_CORE_LOADER_MANIFEST_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/run/request.h"
#include "proto/mergekernel/v1/pack.pb.h"

namespace mk {

inline constexpr char kManifestName[] = "manifest.textproto";
inline constexpr size_t kMaxManifestBytes = 1 << 20;

// From text form. INVALID_ARGUMENT with line and column for what does not parse; unknown fields do
// not.
absl::StatusOr<mergekernel::v1::Manifest> ParseManifest(std::string_view text);

// INVALID_ARGUMENT naming the field, the value and the rule. `folder` and `version` are those the
// manifest stands in.
absl::Status ValidateManifest(const mergekernel::v1::Manifest& manifest, const std::string& folder,
                              int64_t version);

// REQUIRES a validated manifest.
Signature SignatureOf(const mergekernel::v1::Manifest& manifest);
// What a lane may take on a device of this kind ("cpu", "cuda", ...).
uint64_t ScratchBytesOn(const mergekernel::v1::Manifest& manifest, const std::string& device_kind);

// How far a golden case may be off on a device of this kind ("cpu", "cuda", ...).
double GoldenToleranceOn(const mergekernel::v1::Manifest& manifest, const std::string& device_kind);

int LanesOf(const mergekernel::v1::Manifest& manifest);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_MANIFEST_H_
