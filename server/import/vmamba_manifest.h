// What an imported VMamba says of itself: its manifest, labels and golden vectors.
#ifndef MERGEKERNEL_SERVER_IMPORT_VMAMBA_MANIFEST_H_
#define MERGEKERNEL_SERVER_IMPORT_VMAMBA_MANIFEST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "packs/vmamba/import/layout.h"
#include "proto/mergekernel/v1/pack.pb.h"
#include "server/import/vmamba.h"

namespace mk {

struct ManifestFacts {
  mergekernel::v1::Code code;
  vmamba::DeclaredMemory memory;
  int64_t classes = 0;
  int lanes = 1;
};

// All but the files, which AddFile appends, and the description.
mergekernel::v1::Manifest MakeManifest(const VMambaImported& result, const ManifestFacts& facts);
void AddFile(const std::string& name, const std::string& sha256, mergekernel::v1::File::Kind kind,
             mergekernel::v1::Manifest* manifest);
// The manifest's `description`.
std::string Sentence(const VMambaImported& result, int64_t classes, bool golden);
absl::StatusOr<std::string> ManifestText(const mergekernel::v1::Manifest& manifest);

// The labels of the file at `path`, one a line, as many as `classes`; "class 0", "class 1", ...
// where `path` is empty. INVALID_ARGUMENT naming the line or both counts.
absl::StatusOr<std::string> Labels(const std::string& path, int64_t classes);

// Golden vectors that fit the manifest's signature. INVALID_ARGUMENT naming the tensor.
absl::StatusOr<std::string> ReadGoldenFile(const std::string& path,
                                           const mergekernel::v1::Manifest& manifest);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_IMPORT_VMAMBA_MANIFEST_H_
