#include "server/grpc/wire_request.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/grpc/proto_wire.h"
#include "server/grpc/typed_contents.h"

namespace mk {
namespace {

absl::Status Malformed(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("ModelInferRequest: malformed ", what));
}

template <typename... Parts>
absl::Status Wrong(const std::string& input, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("input '", Printable(input), "': ", parts...));
}

// What a request's data points into besides the wire's own bytes.
struct Backing {
  std::shared_ptr<const void> wire;
  std::deque<std::string> copies;  // a deque: views into its strings stay valid
  std::vector<HostBlock> blocks;
};

using Spans = std::vector<std::string_view>;

uint64_t SizeOf(const Spans& spans) {
  uint64_t size = 0;
  for (const std::string_view span : spans) size += span.size();
  return size;
}

// Reads the top level of the message, whose bytes lie in several pieces.
class PieceReader {
 public:
  explicit PieceReader(const std::vector<std::string_view>& pieces) : pieces_(pieces) { Settle(); }

  bool done() const { return piece_ == pieces_.size(); }

  std::optional<uint8_t> Byte() {
    if (done()) return std::nullopt;
    const auto byte = static_cast<uint8_t>(pieces_[piece_][at_++]);
    Settle();
    return byte;
  }
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (uint32_t i = 0; i < 10; ++i) {
      const auto byte = Byte();
      if (!byte) return std::nullopt;
      value |= static_cast<uint64_t>(*byte & 0x7f) << (7 * i);
      if (*byte < 0x80) return value;
    }
    return std::nullopt;
  }
  // `size` bytes as views into the pieces.
  std::optional<Spans> Take(uint64_t size) {
    Spans spans;
    while (size != 0) {
      if (done()) return std::nullopt;
      const std::string_view span = pieces_[piece_].substr(at_, size);
      spans.push_back(span);
      size -= span.size();
      at_ += span.size();
      Settle();
    }
    return spans;
  }

 private:
  // Moves on to a piece that has bytes left.
  void Settle() {
    while (piece_ < pieces_.size() && at_ == pieces_[piece_].size()) ++piece_, at_ = 0;
  }

  const std::vector<std::string_view>& pieces_;
  size_t piece_ = 0;
  size_t at_ = 0;
};

struct DraftInput {
  InputTensor tensor;
  std::string datatype;
  std::vector<std::string_view> contents;  // each occurrence
};

// Parses one request; holds what its parts need in common.
class Parser {
 public:
  Parser(std::shared_ptr<const void> wire, HostPool& pool, InferRequest* request)
      : backing_(std::make_shared<Backing>()), pool_(pool), request_(*request) {
    backing_->wire = std::move(wire);
  }

  absl::Status Parse(const std::vector<std::string_view>& pieces) {
    PieceReader reader(pieces);
    while (!reader.done()) MK_RETURN_IF_ERROR(TopLevel(reader));
    MK_RETURN_IF_ERROR(PlaceContents());
    for (DraftInput& input : inputs_) request_.inputs.push_back(std::move(input.tensor));
    request_.keep_alive = backing_;
    return absl::OkStatus();
  }

 private:
  absl::Status TopLevel(PieceReader& reader) {
    const auto tag = reader.Varint();
    if (!tag || *tag > UINT32_MAX || *tag >> 3 == 0) return Malformed("tag");
    const auto id = static_cast<uint32_t>(*tag >> 3);
    switch (*tag & 7) {
      case kVarint:
        return reader.Varint() ? absl::OkStatus() : Malformed("number");
      case kFixed32:
        return reader.Take(4) ? absl::OkStatus() : Malformed("number");
      case kFixed64:
        return reader.Take(8) ? absl::OkStatus() : Malformed("number");
      case kBytes:
        break;
      default:
        return Malformed("field");
    }
    const auto size = reader.Varint();
    auto spans = size ? reader.Take(*size) : std::nullopt;
    if (!spans) return Malformed("length");
    if (id == 7) {
      raw_.push_back(*std::move(spans));
      return raw_.size() <= kMaxTensorsPerRequest ? absl::OkStatus()
                                                  : TooMany("raw_input_contents");
    }
    if (id < 1 || id > 6) return absl::OkStatus();
    return Field(id, Contiguous(*spans));
  }

  absl::Status Field(uint32_t id, std::string_view bytes) {
    switch (id) {
      case 1:
        return Name("model_name", bytes, &request_.model_name);
      case 2:
        return Name("model_version", bytes, &request_.version_text);
      case 3:
        return Name("id", bytes, &request_.id);
      case 4:
        return ReadParameter(bytes, &request_.parameters);
      case 5:
        inputs_.emplace_back();
        return inputs_.size() <= kMaxTensorsPerRequest ? ReadInput(bytes, inputs_.back())
                                                       : TooMany("inputs");
      default:
        return ReadOutput(bytes);
    }
  }

  static absl::Status TooMany(const char* what) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxTensorsPerRequest, " ", what));
  }

  // A sub-message in one piece: nearly always a view, a copy where it crosses a boundary.
  std::string_view Contiguous(const Spans& spans) {
    if (spans.empty()) return {};
    if (spans.size() == 1) return spans[0];
    std::string& copy = backing_->copies.emplace_back();
    copy.reserve(SizeOf(spans));
    for (const std::string_view span : spans) copy.append(span);
    return copy;
  }

  static absl::Status Name(const char* what, std::string_view bytes, std::string* out) {
    if (bytes.size() > kMaxNameBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " of ", bytes.size(), " bytes, the limit is ", kMaxNameBytes));
    }
    return Text(what, bytes, out);
  }

  // A `string` field. What is no UTF-8 Protobuf would not read, here or in an answer that repeats
  // it.
  static absl::Status Text(const char* what, std::string_view bytes, std::string* out) {
    if (!IsUtf8(bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " '", Printable(bytes, 40), "' is no UTF-8"));
    }
    out->assign(bytes);
    return absl::OkStatus();
  }

  // An entry of map<string, InferParameter>.
  static absl::Status ReadParameter(std::string_view bytes, Parameters* out) {
    std::string key;
    Parameter value;  // `false` when the value is left out, as protobuf reads it
    WireReader entry(bytes);
    for (WireField field; entry.Next(&field);) {
      if (field.id == 1 && field.type == kBytes) {
        MK_RETURN_IF_ERROR(Name("parameter name", field.bytes, &key));
      } else if (field.id == 2 && field.type == kBytes) {
        WireReader choice(field.bytes);
        for (WireField one; choice.Next(&one);) MK_RETURN_IF_ERROR(SetParameter(one, &value));
        if (choice.failed()) return Malformed("parameter");
      }
    }
    if (entry.failed()) return Malformed("parameter");
    for (auto& [name, old] : *out) {
      if (name == key) return old = std::move(value), absl::OkStatus();
    }
    if (out->size() == kMaxParametersPerRequest) return TooMany("parameters");
    out->emplace_back(std::move(key), std::move(value));
    return absl::OkStatus();
  }

  static absl::Status SetParameter(const WireField& field, Parameter* value) {
    if (field.id == 1 && field.type == kVarint) *value = field.number != 0;
    if (field.id == 2 && field.type == kVarint) *value = static_cast<int64_t>(field.number);
    if (field.id == 3 && field.type == kBytes) {
      std::string text;
      MK_RETURN_IF_ERROR(Text("string_param", field.bytes, &text));
      *value = std::move(text);
    }
    if (field.id == 4 && field.type == kFixed64) {
      double number;
      std::memcpy(&number, &field.number, sizeof number);
      *value = number;
    }
    if (field.id == 5 && field.type == kVarint) *value = field.number;
    return absl::OkStatus();
  }

  // Parameters of a tensor: what would change where its data is, or what it means, is refused; the
  // rest is for HTTP.
  static absl::Status JudgeTensorParameters(const std::string& tensor,
                                            const Parameters& parameters) {
    for (const auto& [key, value] : parameters) {
      if (key.rfind("shared_memory", 0) == 0) {
        return absl::UnimplementedError(
            absl::StrCat("tensor '", Printable(tensor), "': ", key,
                         ": shared memory is not served by this build"));
      }
      if (key == "classification") {
        return absl::UnimplementedError(absl::StrCat(
            "output '", Printable(tensor), "': classification is not served by this build"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadInput(std::string_view bytes, DraftInput& input) {
    Parameters parameters;
    WireReader reader(bytes);
    for (WireField field; reader.Next(&field);) {
      if (field.id == 3) {
        MK_RETURN_IF_ERROR(ReadShape(field, input));
      } else if (field.type != kBytes) {
        continue;
      } else if (field.id == 1) {
        MK_RETURN_IF_ERROR(Name("input name", field.bytes, &input.tensor.name));
      } else if (field.id == 2) {
        MK_RETURN_IF_ERROR(Name("datatype", field.bytes, &input.datatype));
      } else if (field.id == 4) {
        MK_RETURN_IF_ERROR(ReadParameter(field.bytes, &parameters));
      } else if (field.id == 5) {
        input.contents.push_back(field.bytes);
      }
    }
    if (reader.failed()) return Malformed("input");
    input.tensor.dtype = DtypeFromName(input.datatype);
    if (input.tensor.dtype == MK_DTYPE_INVALID) {
      return Wrong(input.tensor.name, "unknown datatype '", Printable(input.datatype, 40), "'");
    }
    return JudgeTensorParameters(input.tensor.name, parameters);
  }

  static absl::Status ReadShape(const WireField& field, DraftInput& input) {
    std::vector<int64_t>& shape = input.tensor.shape;
    if (field.type == kVarint) {
      shape.push_back(static_cast<int64_t>(field.number));
    } else if (field.type == kBytes) {
      WireReader packed(field.bytes);
      while (!packed.done() && shape.size() <= MK_MAX_RANK) {
        shape.push_back(static_cast<int64_t>(packed.Varint()));
        if (packed.failed()) return Malformed("shape");
      }
    }
    if (shape.size() > MK_MAX_RANK) {
      return Wrong(input.tensor.name, "rank over ", MK_MAX_RANK);
    }
    return absl::OkStatus();
  }

  absl::Status ReadOutput(std::string_view bytes) {
    if (request_.outputs.size() == kMaxTensorsPerRequest) return TooMany("outputs");
    std::string name;
    Parameters parameters;
    WireReader reader(bytes);
    for (WireField field; reader.Next(&field);) {
      if (field.type != kBytes) continue;
      if (field.id == 1) MK_RETURN_IF_ERROR(Name("output name", field.bytes, &name));
      if (field.id == 2) MK_RETURN_IF_ERROR(ReadParameter(field.bytes, &parameters));
    }
    if (reader.failed()) return Malformed("output");
    MK_RETURN_IF_ERROR(JudgeTensorParameters(name, parameters));
    request_.outputs.push_back(std::move(name));
    return absl::OkStatus();
  }

  // Gives every input its data: raw contents by position, or typed ones.
  absl::Status PlaceContents() {
    if (!raw_.empty() && raw_.size() != inputs_.size()) {
      const bool fewer = raw_.size() < inputs_.size();
      return absl::InvalidArgumentError(absl::StrCat(
          "raw_input_contents: ", raw_.size(), " for ", inputs_.size(), " inputs",
          fewer
              ? absl::StrCat("; input '", Printable(inputs_[raw_.size()].tensor.name), "' has none")
              : "; the surplus belongs to no input"));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      DraftInput& input = inputs_[i];
      if (!raw_.empty() && !input.contents.empty()) {
        return Wrong(input.tensor.name, "has contents although raw_input_contents are given");
      }
      if (!raw_.empty()) {
        MK_RETURN_IF_ERROR(PlaceRaw(raw_[i], input.tensor));
      } else if (!input.contents.empty()) {
        MK_ASSIGN_OR_RETURN(
            HostBlock block,
            PackTypedContents(input.tensor.name, input.tensor.dtype, input.contents, pool_));
        Keep(std::move(block), input.tensor);
      }
    }
    return absl::OkStatus();
  }

  absl::Status PlaceRaw(const Spans& spans, InputTensor& tensor) {
    const uint64_t size = SizeOf(spans);
    const uint64_t align = std::max<uint64_t>(1, DtypeSize(tensor.dtype));
    if (spans.size() == 1 && reinterpret_cast<uintptr_t>(spans[0].data()) % align == 0) {
      tensor.data = spans[0].data();
      tensor.size_bytes = size;
      return absl::OkStatus();
    }
    MK_ASSIGN_OR_RETURN(HostBlock block, pool_.Allocate(size));
    char* out = static_cast<char*>(block.data());
    for (const std::string_view span : spans) {
      std::memcpy(out, span.data(), span.size());
      out += span.size();
    }
    Keep(std::move(block), tensor);
    return absl::OkStatus();
  }

  void Keep(HostBlock block, InputTensor& tensor) {
    tensor.data = block.data();
    tensor.size_bytes = block.size();
    backing_->blocks.push_back(std::move(block));
  }

  const std::shared_ptr<Backing> backing_;
  HostPool& pool_;
  InferRequest& request_;
  std::vector<DraftInput> inputs_;
  std::vector<Spans> raw_;
};

}  // namespace

absl::Status ParseInferRequest(const std::vector<std::string_view>& pieces,
                               std::shared_ptr<const void> keep_alive, HostPool& pool,
                               InferRequest* request) {
  return Parser(std::move(keep_alive), pool, request).Parse(pieces);
}

}  // namespace mk
