// A checkpoint as a stream: the header first, then every tensor's bytes in the order of the data.
// Whatever the file is, what comes out of here is safetensors: such a file is read as it stands,
// PyTorch's through a child that cannot do anything else (docs/design/import.md). Known by content,
// never by name.
#ifndef MERGEKERNEL_SERVER_IMPORT_CHECKPOINT_H_
#define MERGEKERNEL_SERVER_IMPORT_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/loader/repository.h"
#include "core/weights/safetensors.h"

namespace mk {

enum class CheckpointKind { kSafetensors, kTorchZip };

// What the first bytes of a file (up to 512 of them) say it is. INVALID_ARGUMENT for what is known
// and not read here, with how to convert it: PyTorch's format before 1.6 (bare pickle, tar), a
// compressed file, a Git LFS pointer, a web page, an ONNX or HDF5 file.
absl::StatusOr<CheckpointKind> SniffCheckpoint(std::string_view first_bytes, uint64_t file_size);

// One thread.
class CheckpointStream {
 public:
  virtual ~CheckpointStream() = default;
  const SafetensorsHeader& header() const { return header_; }
  // What a reader should know: what was left out, limits that could not be set.
  const std::vector<std::string>& notes() const { return notes_; }

  // The next `size` bytes of the data, all of them. DATA_LOSS when the file ends early or cannot be
  // read; the converter's own refusal otherwise. Blocks; a converter that is silent is ended.
  virtual absl::Status Read(char* out, uint64_t size) = 0;
  // After the last byte: DATA_LOSS when the file changed its size meanwhile, or when the converter
  // did not end well.
  virtual absl::Status Finish() = 0;

 protected:
  SafetensorsHeader header_;
  std::vector<std::string> notes_;
};

// A safetensors file, positioned at its data. `fd` is a plain file of `file_size` bytes.
absl::StatusOr<std::unique_ptr<CheckpointStream>> OpenSafetensors(Fd fd, uint64_t file_size);

// Reads the length word and the JSON through `read` (bytes in order) and parses them.
template <typename ReadFunction>
absl::StatusOr<SafetensorsHeader> ReadStreamedHeader(ReadFunction read, uint64_t file_size) {
  char first[8] = {};
  if (file_size >= sizeof first) {
    const absl::Status status = read(first, sizeof first);
    if (!status.ok()) return status;
  }
  const auto size = ReadSafetensorsHeaderSize(
      std::string_view(first, file_size >= sizeof first ? 8 : 0), file_size);
  if (!size.ok()) return size.status();
  std::string json(*size, '\0');
  const absl::Status status = read(json.data(), json.size());
  if (!status.ok()) return status;
  return ParseSafetensorsHeader(json, file_size);
}

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_IMPORT_CHECKPOINT_H_
