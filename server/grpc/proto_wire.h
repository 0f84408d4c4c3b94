// The protobuf wire format, as far as ModelInfer needs it: a bounds-checked reader over contiguous
// bytes, and appenders.
#ifndef MERGEKERNEL_SERVER_GRPC_PROTO_WIRE_H_
#define MERGEKERNEL_SERVER_GRPC_PROTO_WIRE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace mk {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// One field: `number` holds the value of varint and fixed fields, `bytes` that of length-delimited
// ones.
struct WireField {
  uint32_t id = 0;
  uint32_t type = 0;
  uint64_t number = 0;
  std::string_view bytes;
};

// Reads fields in turn. Any bytes are safe. After `failed()` nothing more is read.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : left_(bytes) {}

  bool failed() const { return failed_; }
  bool done() const { return left_.empty(); }

  // False at the end, or on malformed bytes (failed() tells).
  bool Next(WireField* field) {
    if (left_.empty() || failed_) return false;
    const uint64_t tag = Varint();
    field->id = static_cast<uint32_t>(tag >> 3);
    field->type = static_cast<uint32_t>(tag & 7);
    if (tag > UINT32_MAX || field->id == 0) failed_ = true;
    switch (field->type) {
      case kVarint:
        field->number = Varint();
        break;
      case kFixed64:
        field->number = Fixed<uint64_t>();
        break;
      case kFixed32:
        field->number = Fixed<uint32_t>();
        break;
      case kBytes:
        field->bytes = Take(Varint());
        break;
      default:
        failed_ = true;  // groups are no part of proto3
    }
    return !failed_;
  }

  uint64_t Varint() {
    uint64_t value = 0;
    for (uint32_t i = 0; i < 10 && !left_.empty(); ++i) {
      const auto byte = static_cast<uint8_t>(left_[0]);
      left_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }

  template <typename T>
  T Fixed() {
    T value = 0;
    if (left_.size() < sizeof value) {
      failed_ = true;
      return 0;
    }
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }

  std::string_view Take(uint64_t size) {
    if (failed_ || size > left_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return bytes;
  }

 private:
  std::string_view left_;
  bool failed_ = false;
};

inline void AppendVarint(std::string* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}
inline void AppendTag(std::string* out, uint32_t id, WireType type) {
  AppendVarint(out, id << 3 | type);
}
inline void AppendBytes(std::string* out, uint32_t id, std::string_view bytes) {
  AppendTag(out, id, kBytes);
  AppendVarint(out, bytes.size());
  out->append(bytes);
}
inline void AppendNumber(std::string* out, uint32_t id, uint64_t value) {
  AppendTag(out, id, kVarint);
  AppendVarint(out, value);
}

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_GRPC_PROTO_WIRE_H_
