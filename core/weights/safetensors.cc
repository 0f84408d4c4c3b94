#include "core/weights/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/checked.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace mk {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
};
// Indexed by StoredType.
constexpr std::array<TypeRow, 17> kTypes = {{{"F64", 64},
                                             {"F32", 32},
                                             {"F16", 16},
                                             {"BF16", 16},
                                             {"I64", 64},
                                             {"I32", 32},
                                             {"I16", 16},
                                             {"I8", 8},
                                             {"U64", 64},
                                             {"U32", 32},
                                             {"U16", 16},
                                             {"U8", 8},
                                             {"BOOL", 8},
                                             {"F8_E4M3", 8},
                                             {"F8_E5M2", 8},
                                             {"F8_E8M0", 8},
                                             {"F4", 4}}};
constexpr size_t kMaxRank = 64;
constexpr size_t kMaxTensors = 1 << 20;

template <typename... Parts>
absl::Status Wrong(const std::string& tensor, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("safetensors: tensor '", Printable(tensor), "': ", parts...));
}

// One tensor as its JSON is read: what has been seen of it so far.
struct Draft {
  std::string name;
  std::string dtype;
  bool has_dtype = false, has_shape = false, has_offsets = false;
  std::vector<int64_t> shape;
  std::vector<uint64_t> offsets;
};

// Reads the header's JSON by events, so that nothing nests deeper than its grammar allows and
// duplicate names are seen.
//   { "<tensor>": {"dtype": "F32", "shape": [..], "data_offsets": [a, b]}, "__metadata__": {"k":
//   "v"} }
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  absl::Status status;
  std::vector<Draft> drafts;
  std::map<std::string, std::string> metadata;

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_float(double, const std::string& text) override { return Unexpected(text); }
  bool number_integer(int64_t value) override {
    if (in_array_ && field_ == "shape") return Wrongly("dim ", value, " is negative");
    if (in_array_ && field_ == "data_offsets") return Wrongly("offset ", value, " is negative");
    return Unexpected("an integer");
  }
  bool number_unsigned(uint64_t value) override {
    if (!in_array_) return Unexpected("an integer");
    Draft& draft = drafts.back();
    if (field_ == "shape") {
      if (draft.shape.size() == kMaxRank) return Wrongly("rank over ", kMaxRank);
      if (value > INT64_MAX) return Wrongly("dim ", value, " is too large");
      draft.shape.push_back(static_cast<int64_t>(value));
    } else {
      if (draft.offsets.size() == 2) return Wrongly("data_offsets has more than two numbers");
      draft.offsets.push_back(value);
    }
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ == 2 && in_metadata_) {
      if (!metadata.emplace(field_, value).second) {
        return Wrongly("field '", Printable(field_), "' is given twice");
      }
      return true;
    }
    if (depth_ == 2 && field_ == "dtype" && !in_array_) {
      drafts.back().dtype = value;
      drafts.back().has_dtype = true;
      return true;
    }
    return Unexpected("a string");
  }
  bool binary(nlohmann::json::binary_t&) override { return Unexpected("bytes"); }
  bool start_object(size_t) override {
    if (++depth_ > 2 || in_array_) return Unexpected("an object");
    if (depth_ == 2) {
      in_metadata_ = name_ == "__metadata__";
      if (!in_metadata_) {
        drafts.push_back({});
        drafts.back().name = name_;
      }
    }
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(std::string& value) override {
    if (depth_ == 1) {
      name_ = value;
      if (!names_.insert(value).second) return Wrongly("is named twice");
      if (names_.size() > kMaxTensors) return Wrongly("more than ", kMaxTensors, " tensors");
    } else {
      field_ = value;
      if (in_metadata_) return true;
      Draft& draft = drafts.back();
      bool* seen = value == "dtype"          ? &draft.has_dtype
                   : value == "shape"        ? &draft.has_shape
                   : value == "data_offsets" ? &draft.has_offsets
                                             : nullptr;
      if (seen == nullptr) return Wrongly("unknown field '", Printable(value), "'");
      if (*seen) return Wrongly("field '", value, "' is given twice");
    }
    return true;
  }
  bool start_array(size_t) override {
    const bool fits = depth_ == 2 && !in_array_ && !in_metadata_ &&
                      (field_ == "shape" || field_ == "data_offsets");
    if (!fits) return Unexpected("an array");
    (field_ == "shape" ? drafts.back().has_shape : drafts.back().has_offsets) = true;
    in_array_ = true;
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    if (status.ok()) {
      status = absl::InvalidArgumentError(
          absl::StrCat("safetensors: the header is no JSON (UTF-8) at byte ", position));
    }
    return false;
  }

 private:
  template <typename... Parts>
  bool Wrongly(const Parts&... parts) {
    status = Wrong(name_, parts...);
    return false;
  }
  bool Unexpected(const std::string& what) {
    if (depth_ == 0) {
      status = absl::InvalidArgumentError("safetensors: the header is no JSON object");
      return false;
    }
    return Wrongly("unexpected ", Printable(what),
                   depth_ >= 2 ? absl::StrCat(" in field '", Printable(field_), "'") : "");
  }

  int depth_ = 0;
  bool in_array_ = false;
  bool in_metadata_ = false;
  std::string name_;
  std::string field_;
  std::set<std::string> names_;
};

absl::StatusOr<StoredTensor> Judge(const Draft& draft, uint64_t data_size) {
  if (!draft.has_dtype || !draft.has_shape || !draft.has_offsets) {
    return Wrong(draft.name, "lacks ",
                 !draft.has_dtype   ? "dtype"
                 : !draft.has_shape ? "shape"
                                    : "data_offsets");
  }
  StoredTensor tensor;
  tensor.name = draft.name;
  tensor.shape = draft.shape;
  const auto* row = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&](const TypeRow& type) { return type.name == draft.dtype; });
  if (row == kTypes.end()) {
    return Wrong(draft.name, "unknown dtype '", Printable(draft.dtype), "'");
  }
  tensor.type = static_cast<StoredType>(row - kTypes.begin());
  if (draft.offsets.size() != 2) {
    return Wrong(draft.name, "data_offsets has ", draft.offsets.size(), " numbers, not two");
  }
  tensor.begin = draft.offsets[0];
  tensor.end = draft.offsets[1];
  if (tensor.begin > tensor.end || tensor.end > data_size) {
    return Wrong(draft.name, "data_offsets [", tensor.begin, ",", tensor.end,
                 "] are not in order inside the ", data_size, " bytes of data");
  }
  const auto count = CheckedProduct(tensor.shape);
  const auto bits = count ? CheckedMul(*count, static_cast<uint64_t>(row->bits)) : std::nullopt;
  if (!bits) return Wrong(draft.name, "shape has too many elements");
  if (*bits % 8 != 0) return Wrong(draft.name, "its elements do not fill whole bytes");
  if (*bits / 8 != tensor.end - tensor.begin) {
    return Wrong(draft.name, "shape [", absl::StrJoin(tensor.shape, ","), "] of ", draft.dtype,
                 " takes ", *bits / 8, " bytes, data_offsets span ", tensor.end - tensor.begin);
  }
  return tensor;
}

// Spans must cover the data exactly: no hole, no overlap. `tensors` are in the order of their data.
absl::Status CheckCoverage(const std::vector<StoredTensor>& tensors, uint64_t data_size) {
  uint64_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != at) {
      return Wrong(tensor.name, "begins at ", tensor.begin, ", the data before it ends at ", at);
    }
    at = tensor.end;
  }
  if (at != data_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("safetensors: ", data_size - at, " bytes at the end belong to no tensor"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view StoredTypeName(StoredType type) { return kTypes[static_cast<size_t>(type)].name; }
int StoredTypeBits(StoredType type) { return kTypes[static_cast<size_t>(type)].bits; }

const StoredTensor* SafetensorsHeader::Find(std::string_view name) const {
  for (const StoredTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

absl::StatusOr<uint64_t> ReadSafetensorsHeaderSize(std::string_view first_8_bytes,
                                                   uint64_t file_size) {
  if (first_8_bytes.size() < 8 || file_size < 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("safetensors: a file of ", file_size, " bytes has no header"));
  }
  uint64_t size = 0;
  for (int i = 7; i >= 0; --i) {
    size = size << 8 | static_cast<uint8_t>(first_8_bytes[static_cast<size_t>(i)]);
  }
  const uint64_t most = std::min(kMaxSafetensorsHeaderBytes, file_size - 8);
  if (size < 2 || size > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("safetensors: header of ", size, " bytes, must be 2 to ", most));
  }
  return size;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json,
                                                         uint64_t file_size) {
  const auto data_offset = CheckedAdd(8, json.size());
  if (!data_offset || *data_offset > file_size) {
    return absl::InvalidArgumentError("safetensors: the header passes the file");
  }
  // The format wants the object at once; the parser would skip blanks and a byte order mark.
  if (json.substr(0, 1) != "{") {
    return absl::InvalidArgumentError("safetensors: the header is no JSON object");
  }
  // The parser would take a NUL for the end of its input.
  if (json.find('\0') != json.npos) {
    return absl::InvalidArgumentError("safetensors: the header is no JSON: it holds a NUL");
  }
  HeaderReader reader;
  // The format pads with blanks behind the object; JSON allows white space there.
  const bool parsed = nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  if (!reader.status.ok()) return reader.status;
  if (!parsed) return absl::InvalidArgumentError("safetensors: the header is no JSON");

  SafetensorsHeader header;
  header.metadata = std::move(reader.metadata);
  header.data_offset = *data_offset;
  const uint64_t data_size = file_size - *data_offset;
  for (const Draft& draft : reader.drafts) {
    MK_ASSIGN_OR_RETURN(StoredTensor tensor, Judge(draft, data_size));
    header.tensors.push_back(std::move(tensor));
  }
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  MK_RETURN_IF_ERROR(CheckCoverage(header.tensors, data_size));
  return header;
}

absl::StatusOr<SafetensorsView> SafetensorsView::Parse(std::string_view bytes) {
  MK_ASSIGN_OR_RETURN(const uint64_t size,
                      ReadSafetensorsHeaderSize(bytes.substr(0, 8), bytes.size()));
  SafetensorsView view;
  MK_ASSIGN_OR_RETURN(view.header_, ParseSafetensorsHeader(bytes.substr(8, size), bytes.size()));
  view.bytes_ = bytes;
  return view;
}

std::string_view SafetensorsView::Data(const StoredTensor& tensor) const {
  return bytes_.substr(header_.data_offset + tensor.begin, tensor.end - tensor.begin);
}

}  // namespace mk
