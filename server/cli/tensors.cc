#include "server/cli/tensors.h"

#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/cli/answers.h"
#include "server/cli/npy.h"

namespace mk::cli {
namespace {

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ParseShape(const std::string& text) {
  std::vector<int64_t> shape;
  if (text.empty()) return shape;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(part, &dim) || dim < 0) {
      return Wrong("shape '", TerminalText(text, 80), "' must read like 1,224,224,3");
    }
    shape.push_back(dim);
  }
  return shape;
}

namespace {

absl::StatusOr<std::pair<std::string, std::string>> ParseAssignment(const char* flag,
                                                                    const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) {
    return Wrong(flag, " '", TerminalText(text, 80), "' must read NAME=VALUE");
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseAssignments(
    const char* flag, const std::vector<std::string>& texts) {
  std::map<std::string, std::string> values;
  for (const std::string& text : texts) {
    MK_ASSIGN_OR_RETURN(const auto assignment, ParseAssignment(flag, text));
    if (!values.insert(assignment).second) {
      return Wrong(flag, " '", TerminalText(assignment.first, 80), "' comes twice");
    }
  }
  return values;
}

absl::StatusOr<InputFlags> ParseInputFlags(const std::vector<std::string>& inputs,
                                           const std::vector<std::string>& values,
                                           const std::vector<std::string>& shapes, bool random) {
  InputFlags flags;
  flags.random = random;
  MK_ASSIGN_OR_RETURN(flags.files, ParseAssignments("--input", inputs));
  MK_ASSIGN_OR_RETURN(flags.shapes, ParseAssignments("--shape", shapes));
  for (const std::string& text : values) {
    MK_ASSIGN_OR_RETURN(const auto assignment, ParseAssignment("--value", text));
    if (flags.files.count(assignment.first) != 0) {
      return Wrong("'", TerminalText(assignment.first, 80), "' has both --input and --value");
    }
    flags.values[assignment.first].push_back(assignment.second);
  }
  return flags;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  if (!in.good()) return Wrong("file '", TerminalText(path), "' cannot be read");
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

namespace {

// The count of values decides a dim that is open.
absl::Status FillFromValues(const std::string& name, const std::vector<std::string>& texts,
                            HostTensor* tensor) {
  const auto packed = Pack(tensor->datatype, texts);
  if (!packed.ok()) return Wrong("--value ", name, ": ", packed.status().message());
  tensor->data = packed->raw;
  uint64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& dim : tensor->shape) {
    if (dim < 0 && open != nullptr) {
      return Wrong("input '", name, "' has more than one open dim: say which with --shape ", name,
                   "=...");
    }
    if (dim < 0) {
      open = &dim;
    } else {
      known *= static_cast<uint64_t>(dim);
    }
  }
  if (open != nullptr && known != 0 && packed->count % known == 0) {
    *open = static_cast<int64_t>(packed->count / known);
  }
  const auto count = CheckedProduct(tensor->shape);
  if (!count || *count != packed->count) {
    return Wrong("--value ", name, ": ", packed->count, " values for shape [",
                 absl::StrJoin(tensor->shape, ","), "]");
  }
  return absl::OkStatus();
}

absl::Status FillFromFile(const std::string& path, HostTensor* tensor) {
  MK_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  if (IsNpy(bytes)) {
    MK_ASSIGN_OR_RETURN(*tensor, ParseNpy(bytes));
  } else {
    tensor->data = std::move(bytes);
  }
  return absl::OkStatus();
}

absl::Status FillAtRandom(const std::string& name, uint64_t seed, HostTensor* tensor) {
  const auto count = CheckedProduct(tensor->shape);
  if (!count || *count > (uint64_t{1} << 31)) {
    return Wrong("input '", name, "' has shape [", absl::StrJoin(tensor->shape, ","),
                 "]: say which with --shape ", name, "=...");
  }
  tensor->data = RandomData(tensor->datatype, *count, seed);
  return absl::OkStatus();
}

template <typename Map>
absl::Status AllKnown(const std::set<std::string>& known, const Map& flags) {
  for (const auto& [name, value] : flags) {
    if (known.count(name) != 0) continue;
    return Wrong("the model has no input '", TerminalText(name), "'; it has ",
                 absl::StrJoin(known, ", "));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FillInputs(const inference::ModelMetadataResponse& metadata,
                        const std::map<std::string, bool>& optional, const InputFlags& flags,
                        inference::ModelInferRequest* request) {
  std::set<std::string> known;
  for (const auto& input : metadata.inputs()) {
    known.insert(input.name());
    const auto file = flags.files.find(input.name());
    const auto values = flags.values.find(input.name());
    const auto shape_text = flags.shapes.find(input.name());
    const auto is_optional = optional.find(input.name());
    if (file == flags.files.end() && values == flags.values.end() &&
        shape_text == flags.shapes.end() && is_optional != optional.end() && is_optional->second) {
      continue;
    }
    HostTensor tensor{input.datatype(), {input.shape().begin(), input.shape().end()}, {}};
    if (shape_text != flags.shapes.end()) {
      MK_ASSIGN_OR_RETURN(tensor.shape, ParseShape(shape_text->second));
    }
    if (file != flags.files.end()) {
      MK_RETURN_IF_ERROR(FillFromFile(file->second, &tensor));
    } else if (values != flags.values.end()) {
      MK_RETURN_IF_ERROR(FillFromValues(input.name(), values->second, &tensor));
    } else if (flags.random) {
      MK_RETURN_IF_ERROR(FillAtRandom(input.name(), known.size(), &tensor));
    } else {
      return Wrong("input '", input.name(), "' (", input.datatype(), " [",
                   absl::StrJoin(input.shape(), ","), "]) is missing: --input ", input.name(),
                   "=FILE or --value ", input.name(), "=...");
    }
    AddInput(input.name(), tensor, request);
  }
  MK_RETURN_IF_ERROR(AllKnown(known, flags.files));
  MK_RETURN_IF_ERROR(AllKnown(known, flags.values));
  return AllKnown(known, flags.shapes);
}

}  // namespace mk::cli
