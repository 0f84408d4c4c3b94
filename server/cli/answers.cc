#include "server/cli/answers.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/half.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace mk::cli {
namespace {

using nlohmann::json;

template <typename Stored, typename Convert>
json Read(std::string_view raw, Convert convert) {
  json values = json::array();
  for (size_t at = 0; at + sizeof(Stored) <= raw.size(); at += sizeof(Stored)) {
    Stored stored;
    std::memcpy(&stored, raw.data() + at, sizeof stored);
    values.push_back(convert(stored));
  }
  return values;
}

template <typename Stored>
json ReadSame(std::string_view raw) {
  return Read<Stored>(raw, [](Stored value) { return value; });
}

json ReadBytes(std::string_view raw) {
  json values = json::array();
  while (raw.size() >= 4) {
    uint32_t size;
    std::memcpy(&size, raw.data(), sizeof size);
    if (size > raw.size() - 4) break;
    values.push_back(std::string(raw.substr(4, size)));
    raw.remove_prefix(4 + size_t{size});
  }
  return values;
}

absl::Status Refuse(const std::string& datatype, const std::string& text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", TerminalText(text, 40), "' is no ", datatype));
}

template <typename T>
void Append(T value, Packed* packed) {
  packed->raw.append(reinterpret_cast<const char*>(&value), sizeof value);
  ++packed->count;
}

template <typename T>
bool AppendInteger(const std::string& text, Packed* packed) {
  // Through the widest type of the same sign, for absl knows 32 and 64 bits.
  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t> wide = 0;
  if (!absl::SimpleAtoi(text, &wide) || wide < std::numeric_limits<T>::min() ||
      wide > std::numeric_limits<T>::max()) {
    return false;
  }
  Append(static_cast<T>(wide), packed);
  return true;
}

bool AppendNumber(const std::string& datatype, const std::string& text, Packed* packed) {
  if (datatype == "INT8") return AppendInteger<int8_t>(text, packed);
  if (datatype == "INT16") return AppendInteger<int16_t>(text, packed);
  if (datatype == "INT32") return AppendInteger<int32_t>(text, packed);
  if (datatype == "INT64") return AppendInteger<int64_t>(text, packed);
  if (datatype == "UINT8") return AppendInteger<uint8_t>(text, packed);
  if (datatype == "UINT16") return AppendInteger<uint16_t>(text, packed);
  if (datatype == "UINT32") return AppendInteger<uint32_t>(text, packed);
  if (datatype == "UINT64") return AppendInteger<uint64_t>(text, packed);
  if (datatype == "BOOL") {
    const bool yes = text == "true" || text == "1";
    if (!yes && text != "false" && text != "0") return false;
    Append(static_cast<uint8_t>(yes), packed);
    return true;
  }
  double value = 0;
  if (!absl::SimpleAtod(text, &value)) return false;
  const auto narrow = static_cast<float>(value);
  if (datatype == "FP64") Append(value, packed);
  if (datatype == "FP32") Append(narrow, packed);
  if (datatype == "FP16") Append(FloatToHalf(narrow), packed);
  if (datatype == "BF16") Append(FloatToBFloat16(narrow), packed);
  return true;
}

}  // namespace

json Values(const std::string& datatype, std::string_view raw) {
  if (datatype == "FP32") return ReadSame<float>(raw);
  if (datatype == "FP64") return ReadSame<double>(raw);
  if (datatype == "FP16") return Read<uint16_t>(raw, HalfToFloat);
  if (datatype == "BF16") return Read<uint16_t>(raw, BFloat16ToFloat);
  if (datatype == "INT64") return ReadSame<int64_t>(raw);
  if (datatype == "INT32") return ReadSame<int32_t>(raw);
  if (datatype == "INT16") return ReadSame<int16_t>(raw);
  if (datatype == "INT8") return ReadSame<int8_t>(raw);
  if (datatype == "UINT64") return ReadSame<uint64_t>(raw);
  if (datatype == "UINT32") return ReadSame<uint32_t>(raw);
  if (datatype == "UINT16") return ReadSame<uint16_t>(raw);
  if (datatype == "UINT8") return ReadSame<uint8_t>(raw);
  if (datatype == "BOOL") return Read<uint8_t>(raw, [](uint8_t value) { return value != 0; });
  if (datatype == "BYTES") return ReadBytes(raw);
  return nullptr;
}

absl::StatusOr<Packed> Pack(const std::string& datatype, const std::vector<std::string>& texts) {
  Packed packed;
  for (const std::string& text : texts) {
    if (datatype == "BYTES") {
      if (text.size() > std::numeric_limits<uint32_t>::max()) return Refuse(datatype, text);
      Append(static_cast<uint32_t>(text.size()), &packed);
      packed.raw += text;
      continue;
    }
    for (const absl::string_view part : absl::StrSplit(text, ',')) {
      const std::string number(absl::StripAsciiWhitespace(part));
      if (!AppendNumber(datatype, number, &packed)) return Refuse(datatype, number);
    }
  }
  return packed;
}

}  // namespace mk::cli
