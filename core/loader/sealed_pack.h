// The bytes of one version of a pack, as they were when they were hashed: small files in sealed
// memory, weights as open descriptors that are hashed while they stream. What was checked is what
// runs; replacing a file on disk changes nothing.
#ifndef MERGEKERNEL_CORE_LOADER_SEALED_PACK_H_
#define MERGEKERNEL_CORE_LOADER_SEALED_PACK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/loader/repository.h"
#include "proto/mergekernel/v1/pack.pb.h"

namespace mk {

// A sealed memory file with its content mapped read-only.
class SealedFile {
 public:
  // Copies `fd` from its start, at most `limit` bytes, into a memfd called `label` (seen in
  // /proc/self/maps), and seals it.
  static absl::StatusOr<std::unique_ptr<SealedFile>> Copy(int fd, const std::string& label,
                                                          uint64_t limit);
  static absl::StatusOr<std::unique_ptr<SealedFile>> FromBytes(std::string_view bytes,
                                                               const std::string& label);
  // Takes over a memfd that has come from another process; refused when it is not sealed.
  static absl::StatusOr<std::unique_ptr<SealedFile>> Adopt(Fd fd);
  ~SealedFile();

  int fd() const { return fd_.get(); }
  std::string_view bytes() const { return bytes_; }

 private:
  explicit SealedFile(Fd fd) : fd_(std::move(fd)) {}
  absl::Status Map();

  Fd fd_;
  std::string_view bytes_;
};

// Immutable after Read; any thread.
struct SealedPack {
  mergekernel::v1::Manifest manifest;
  std::string digest;  // SHA-256 of the manifest's text, hex
  std::unique_ptr<SealedFile> manifest_file;
  std::map<std::string, std::unique_ptr<SealedFile>> small;
  std::map<std::string, Fd> weights;

  // Reads and judges <version folder>: manifest, then every file that it lists, each against its
  // digest. INVALID_ARGUMENT naming the file and what is wrong with it; DATA_LOSS for a digest that
  // differs (8 digits of both). `max_small_bytes` bounds all small files together. `label` becomes
  // part of the memory files' names.
  static absl::StatusOr<std::shared_ptr<const SealedPack>> Read(int version_folder,
                                                                const std::string& name,
                                                                int64_t version,
                                                                uint64_t max_small_bytes,
                                                                const std::string& label);

  // The manifest alone: its digest, or "" when it cannot be read.
  static std::string DigestOnDisk(int version_folder);

  const SealedFile& code() const { return *small.at(manifest.code().file()); }
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_SEALED_PACK_H_
