// The one safetensors reader of the daemon and its tools. Checks everything before it believes
// anything; allocates nothing whose size a file merely claims.
#ifndef MERGEKERNEL_CORE_WEIGHTS_SAFETENSORS_H_
#define MERGEKERNEL_CORE_WEIGHTS_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mk {

enum class StoredType {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kF4
};
std::string_view StoredTypeName(StoredType type);  // "F32", ...
int StoredTypeBits(StoredType type);

struct StoredTensor {
  std::string name;
  StoredType type;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes from the start of the data section
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;
  uint64_t data_offset = 0;                               // of the data section, in the file
  const StoredTensor* Find(std::string_view name) const;  // null when absent
};

// Most bytes of JSON a header may have.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 32u << 20;

// Reads the length word at the start of a file of `file_size` bytes: the size of the JSON behind
// it. INVALID_ARGUMENT with the observed length and the bound for a length that is 0, passes the
// limit or the file.
absl::StatusOr<uint64_t> ReadSafetensorsHeaderSize(std::string_view first_8_bytes,
                                                   uint64_t file_size);

// Parses the JSON. INVALID_ARGUMENT naming the tensor (cut to 200 characters) and the rule: offsets
// not two integers in order and inside the file, spans that overlap or leave holes, size != shape x
// type (checked product), unknown types, rank over 64, duplicate names, JSON that is malformed, not
// UTF-8 or nested too deep.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json, uint64_t file_size);

// A whole small file in memory; tensors by name as views into `bytes`.
class SafetensorsView {
 public:
  static absl::StatusOr<SafetensorsView> Parse(std::string_view bytes);
  const SafetensorsHeader& header() const { return header_; }
  std::string_view Data(const StoredTensor& tensor) const;

 private:
  SafetensorsHeader header_;
  std::string_view bytes_;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_WEIGHTS_SAFETENSORS_H_
