#include "server/grpc/typed_contents.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/grpc/proto_wire.h"

namespace mk {
namespace {

// How a datatype travels in InferTensorContents. Field ids are the protocol's.
struct Carrier {
  mk_dtype dtype;
  uint32_t field;
  WireType type;
  const char* name;
};
constexpr std::array<Carrier, 12> kCarriers = {{{MK_DTYPE_BOOL, 1, kVarint, "bool_contents"},
                                                {MK_DTYPE_INT8, 2, kVarint, "int_contents"},
                                                {MK_DTYPE_INT16, 2, kVarint, "int_contents"},
                                                {MK_DTYPE_INT32, 2, kVarint, "int_contents"},
                                                {MK_DTYPE_INT64, 3, kVarint, "int64_contents"},
                                                {MK_DTYPE_UINT8, 4, kVarint, "uint_contents"},
                                                {MK_DTYPE_UINT16, 4, kVarint, "uint_contents"},
                                                {MK_DTYPE_UINT32, 4, kVarint, "uint_contents"},
                                                {MK_DTYPE_UINT64, 5, kVarint, "uint64_contents"},
                                                {MK_DTYPE_FP32, 6, kFixed32, "fp32_contents"},
                                                {MK_DTYPE_FP64, 7, kFixed64, "fp64_contents"},
                                                {MK_DTYPE_BYTES, 8, kBytes, "bytes_contents"}}};

template <typename... Parts>
absl::Status Wrong(const std::string& input, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("input '", Printable(input), "': ", parts...));
}

// Calls `value(number)` or, for BYTES, `bytes(view)` for each element, packed or not. False when
// malformed or when a field of another type holds anything.
template <typename Value, typename Bytes>
bool ForEach(const Carrier& carrier, const std::vector<std::string_view>& parts, Value value,
             Bytes bytes) {
  for (const std::string_view part : parts) {
    WireReader reader(part);
    for (WireField field; reader.Next(&field);) {
      if (field.id < 1 || field.id > 8) continue;
      if (field.id != carrier.field) return false;
      if (carrier.type == kBytes) {
        if (field.type != kBytes) return false;
        bytes(field.bytes);
      } else if (field.type == carrier.type) {
        value(field.number);
      } else if (field.type == kBytes) {
        WireReader packed(field.bytes);
        while (!packed.done() && !packed.failed()) {
          const uint64_t number = carrier.type == kVarint    ? packed.Varint()
                                  : carrier.type == kFixed32 ? packed.Fixed<uint32_t>()
                                                             : packed.Fixed<uint64_t>();
          if (!packed.failed()) value(number);
        }
        if (packed.failed()) return false;
      } else {
        return false;
      }
    }
    if (reader.failed()) return false;
  }
  return true;
}

// Whether a varint's value fits the datatype. Signed ones come sign-extended to 64 bits.
bool InRange(mk_dtype dtype, uint64_t number) {
  const auto value = static_cast<int64_t>(number);
  switch (dtype) {
    case MK_DTYPE_INT8:
      return value >= INT8_MIN && value <= INT8_MAX;
    case MK_DTYPE_INT16:
      return value >= INT16_MIN && value <= INT16_MAX;
    case MK_DTYPE_INT32:
      return value >= INT32_MIN && value <= INT32_MAX;
    case MK_DTYPE_UINT8:
      return number <= UINT8_MAX;
    case MK_DTYPE_UINT16:
      return number <= UINT16_MAX;
    case MK_DTYPE_UINT32:
      return number <= UINT32_MAX;
    default:
      return true;
  }
}

}  // namespace

absl::StatusOr<HostBlock> PackTypedContents(const std::string& input, mk_dtype dtype,
                                            const std::vector<std::string_view>& parts,
                                            HostPool& pool) {
  const auto* carrier =
      std::find_if(kCarriers.begin(), kCarriers.end(),
                   [&](const Carrier& candidate) { return candidate.dtype == dtype; });
  if (carrier == kCarriers.end()) {
    return Wrong(input, std::string(DtypeName(dtype)),
                 " has no typed contents; send raw_input_contents");
  }
  // Once for the size, so that nothing grows step by step; once to fill.
  const uint64_t element = DtypeSize(dtype);
  uint64_t size = 0;
  bool in_range = true;
  const bool well_formed = ForEach(
      *carrier, parts,
      [&](uint64_t number) {
        in_range = in_range && InRange(dtype, number);
        size += element;
      },
      [&](std::string_view bytes) { size += sizeof(uint32_t) + bytes.size(); });
  if (!well_formed) {
    return Wrong(input, "contents are malformed or not the ", carrier->name, " that ",
                 std::string(DtypeName(dtype)), " takes");
  }
  if (!in_range) {
    return Wrong(input, "a value of ", carrier->name, " does not fit ",
                 std::string(DtypeName(dtype)));
  }
  MK_ASSIGN_OR_RETURN(HostBlock block, pool.Allocate(size));
  char* out = static_cast<char*>(block.data());
  ForEach(
      *carrier, parts,
      [&](uint64_t number) {
        if (dtype == MK_DTYPE_BOOL) number = number != 0;
        std::memcpy(out, &number, element);  // little-endian: the low bytes
        out += element;
      },
      [&](std::string_view bytes) {
        const auto length = static_cast<uint32_t>(bytes.size());
        std::memcpy(out, &length, sizeof length);
        if (length != 0) std::memcpy(out + sizeof length, bytes.data(), length);
        out += sizeof length + length;
      });
  return block;
}

}  // namespace mk
