#include "server/cli/tensors.h"

#include <array>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace mk::cli {
namespace {

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

struct NpyType {
  std::string_view descr;
  std::string_view datatype;
};
constexpr std::array<NpyType, 12> kNpyTypes = {{{"|b1", "BOOL"},
                                                {"|u1", "UINT8"},
                                                {"<u2", "UINT16"},
                                                {"<u4", "UINT32"},
                                                {"<u8", "UINT64"},
                                                {"|i1", "INT8"},
                                                {"<i2", "INT16"},
                                                {"<i4", "INT32"},
                                                {"<i8", "INT64"},
                                                {"<f2", "FP16"},
                                                {"<f4", "FP32"},
                                                {"<f8", "FP64"}}};
constexpr std::string_view kMagic("\x93NUMPY", 6);

// The text between the first `open` behind "'key':" and the next `close`.
absl::StatusOr<std::string> Value(const std::string& header, const char* key, char open,
                                  char close) {
  const size_t at = header.find(absl::StrCat("'", key, "':"));
  const size_t begin = at == header.npos ? at : header.find(open, at + std::strlen(key) + 3);
  const size_t end = begin == header.npos ? begin : header.find(close, begin + 1);
  if (end == header.npos) return Wrong(".npy: its header lacks '", key, "'");
  return header.substr(begin + 1, end - begin - 1);
}

absl::StatusOr<uint64_t> CountOf(const std::vector<int64_t>& shape) {
  const auto count = CheckedProduct(shape);
  if (!count) return Wrong("shape [", absl::StrJoin(shape, ","), "] is negative or too large");
  return *count;
}

}  // namespace

absl::StatusOr<HostTensor> ParseNpy(std::string_view file) {
  if (file.size() < 10 || file.substr(0, 6) != kMagic) return Wrong(".npy: no such file format");
  const auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<uint8_t>(file[i])); };
  const uint64_t major = byte(6);
  const uint64_t prefix = major == 1 ? 10 : 12;
  if (major < 1 || major > 3 || file.size() < prefix)
    return Wrong(".npy: version ", major, " is unknown");
  uint64_t size = byte(8) | byte(9) << 8;
  if (major > 1) size |= byte(10) << 16 | byte(11) << 24;
  if (size > file.size() - prefix)
    return Wrong(".npy: a header of ", size, " bytes passes the file");
  const std::string header(file.substr(prefix, size));
  MK_ASSIGN_OR_RETURN(const std::string descr, Value(header, "descr", '\'', '\''));
  MK_ASSIGN_OR_RETURN(const std::string dims, Value(header, "shape", '(', ')'));
  if (header.find("'fortran_order': False") == header.npos) {
    return Wrong(".npy: Fortran order is not supported; save it with numpy.ascontiguousarray");
  }
  HostTensor tensor;
  for (const NpyType& type : kNpyTypes) {
    if (type.descr == descr) tensor.datatype = type.datatype;
  }
  if (tensor.datatype.empty())
    return Wrong(".npy: type '", Printable(descr, 40), "' is not supported");
  for (absl::string_view part : absl::StrSplit(dims, ',')) {
    part = absl::StripAsciiWhitespace(part);
    int64_t dim = 0;
    if (part.empty()) continue;
    if (!absl::SimpleAtoi(part, &dim) || dim < 0)
      return Wrong(".npy: its shape is no list of sizes");
    tensor.shape.push_back(dim);
  }
  MK_ASSIGN_OR_RETURN(const uint64_t count, CountOf(tensor.shape));
  const auto bytes = CheckedMul(count, DtypeSize(DtypeFromName(tensor.datatype)));
  if (!bytes || *bytes != file.size() - prefix - size) {
    return Wrong(".npy: ", file.size() - prefix - size, " bytes of data for shape [",
                 absl::StrJoin(tensor.shape, ","), "]");
  }
  tensor.data = std::string(file.substr(prefix + size));
  return tensor;
}

absl::StatusOr<std::string> WriteNpy(const HostTensor& tensor) {
  std::string_view descr;
  for (const NpyType& type : kNpyTypes) {
    if (type.datatype == tensor.datatype) descr = type.descr;
  }
  if (descr.empty()) return Wrong(tensor.datatype, " has no .npy form");
  std::string header =
      absl::StrCat("{'descr': '", std::string(descr), "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(tensor.shape, ", "), tensor.shape.size() == 1 ? "," : "", "), }");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file(kMagic);
  file += {'\x01', '\0', static_cast<char>(header.size() & 0xff),
           static_cast<char>(header.size() >> 8)};
  return file + header + tensor.data;
}

absl::StatusOr<std::vector<int64_t>> ParseShape(const std::string& text) {
  std::vector<int64_t> shape;
  if (text.empty()) return shape;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(part, &dim) || dim < 0) {
      return Wrong("shape '", Printable(text, 80), "' must read like 1,224,224,3");
    }
    shape.push_back(dim);
  }
  return shape;
}

absl::StatusOr<std::map<std::string, std::string>> ParseAssignments(
    const char* flag, const std::vector<std::string>& texts) {
  std::map<std::string, std::string> values;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == text.npos || equals == 0) {
      return Wrong(flag, " '", Printable(text, 80), "' must read NAME=VALUE");
    }
    values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return values;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  if (!in.good()) return Wrong("file '", Printable(path), "' cannot be read");
  return bytes.str();
}

std::string RandomData(const std::string& datatype, uint64_t count, uint64_t seed) {
  const auto next = [&seed] {  // splitmix64
    uint64_t z = seed += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  };
  std::string data;
  const uint64_t size = DtypeSize(DtypeFromName(datatype));
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits = next();
    if (datatype == "BYTES") {
      data.append("\x08\0\0\0", 4).append(reinterpret_cast<const char*>(&bits), 8);
      continue;
    }
    const double unit = static_cast<double>(bits >> 40) * 0x1p-23 - 1;
    const float f32 = static_cast<float>(unit);
    if (datatype == "BOOL") bits &= 1;
    if (datatype == "FP32") std::memcpy(&bits, &f32, 4);
    if (datatype == "FP64") std::memcpy(&bits, &unit, 8);
    if (datatype == "FP16") bits = (bits & 0x83ff) | 0x3800;  // +-[0.5, 1)
    if (datatype == "BF16") bits = (bits & 0x807f) | 0x3f00;
    data.append(reinterpret_cast<const char*>(&bits), size);
  }
  return data;
}

void AddInput(const std::string& name, const HostTensor& tensor,
              inference::ModelInferRequest* request) {
  auto* input = request->add_inputs();
  input->set_name(name);
  input->set_datatype(tensor.datatype);
  for (const int64_t dim : tensor.shape) input->add_shape(dim);
  request->add_raw_input_contents(tensor.data);
}

HostTensor BytesTensor(std::string_view element) {
  HostTensor tensor{"BYTES", {1}, {}};
  const auto size = static_cast<uint32_t>(element.size());
  tensor.data.assign(reinterpret_cast<const char*>(&size), sizeof size);
  tensor.data += element;
  return tensor;
}

absl::Status FillInputs(const inference::ModelMetadataResponse& metadata,
                        const std::map<std::string, bool>& optional, const InputFlags& flags,
                        inference::ModelInferRequest* request) {
  std::set<std::string> known;
  for (const auto& input : metadata.inputs()) {
    known.insert(input.name());
    const auto file = flags.files.find(input.name());
    const auto shape_text = flags.shapes.find(input.name());
    const auto is_optional = optional.find(input.name());
    if (file == flags.files.end() && shape_text == flags.shapes.end() &&
        is_optional != optional.end() && is_optional->second) {
      continue;
    }
    HostTensor tensor{input.datatype(), {input.shape().begin(), input.shape().end()}, {}};
    if (shape_text != flags.shapes.end()) {
      MK_ASSIGN_OR_RETURN(tensor.shape, ParseShape(shape_text->second));
    }
    if (file != flags.files.end()) {
      MK_ASSIGN_OR_RETURN(std::string bytes, ReadFile(file->second));
      if (bytes.substr(0, 6) == kMagic) {
        MK_ASSIGN_OR_RETURN(tensor, ParseNpy(bytes));
      } else {
        tensor.data = std::move(bytes);
      }
    } else if (flags.random) {
      const auto count = CheckedProduct(tensor.shape);
      if (!count || *count > (uint64_t{1} << 31)) {
        return Wrong("input '", input.name(), "' has shape [", absl::StrJoin(tensor.shape, ","),
                     "]: say which with --shape ", input.name(), "=...");
      }
      tensor.data = RandomData(tensor.datatype, *count, known.size());
    } else {
      return Wrong("input '", input.name(), "' (", input.datatype(), " [",
                   absl::StrJoin(input.shape(), ","), "]) is missing: --input ", input.name(),
                   "=FILE");
    }
    AddInput(input.name(), tensor, request);
  }
  for (const auto* names : {&flags.files, &flags.shapes}) {
    for (const auto& [name, value] : *names) {
      if (known.count(name) == 0) {
        return Wrong("the model has no input '", Printable(name), "'; it has ",
                     absl::StrJoin(known, ", "));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace mk::cli
