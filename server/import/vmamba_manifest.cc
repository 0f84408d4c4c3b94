#include "server/import/vmamba_manifest.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/loader/golden.h"
#include "core/loader/manifest.h"
#include "server/import/pack_library_file.h"

namespace mk {
namespace {

using mergekernel::v1::Manifest;

constexpr char kLabelsFile[] = "labels.txt";
constexpr uint64_t kMaxLabelsBytes = 4 << 20;
constexpr uint64_t kMaxGoldenBytes = 64 << 20;

void AddTensor(google::protobuf::RepeatedPtrField<mergekernel::v1::Tensor>* list, const char* name,
               const char* type, std::initializer_list<int64_t> shape, bool optional) {
  auto* tensor = list->Add();
  tensor->set_name(name);
  tensor->set_datatype(type);
  for (const int64_t dim : shape) tensor->add_shape(dim);
  tensor->set_optional(optional);
}

}  // namespace

void AddFile(const std::string& name, const std::string& sha256, mergekernel::v1::File::Kind kind,
             Manifest* manifest) {
  auto* file = manifest->add_files();
  file->set_name(name);
  file->set_sha256(sha256);
  file->set_kind(kind);
}

Manifest MakeManifest(const VMambaImported& result, const ManifestFacts& facts) {
  Manifest manifest;
  manifest.set_name(result.name);
  manifest.set_version(result.version);
  *manifest.mutable_code() = facts.code;
  for (const char* device : {"cpu", "cuda"}) manifest.add_devices(device);
  AddTensor(manifest.mutable_inputs(), "image", "UINT8", {-1, -1, -1}, true);
  AddTensor(manifest.mutable_inputs(), "encoded_image", "BYTES", {1}, true);
  AddTensor(manifest.mutable_outputs(), "logits", "FP32", {facts.classes}, false);
  manifest.mutable_memory()->set_weights_bytes(facts.memory.weights_bytes);
  manifest.mutable_memory()->set_scratch_bytes(facts.memory.scratch_bytes);
  manifest.mutable_memory()->set_device_scratch_bytes(facts.memory.device_scratch_bytes);
  manifest.set_lanes(facts.lanes);
  for (const auto& [key, value] : result.parameters) (*manifest.mutable_parameters())[key] = value;
  manifest.set_labels_file(kLabelsFile);
  manifest.set_weights_license(result.licence);
  for (const int spot : {2, 4, 5}) manifest.add_blind_spots(spot);
  return manifest;
}

std::string Sentence(const VMambaImported& result, int64_t classes, bool golden) {
  return absl::StrCat(
      "VMamba (", result.parameters.at("config.forward_type"), ") with ", result.elements,
      " parameters, imported from a ", result.source, " checkpoint: one score for each of ",
      classes, " classes. ",
      golden ? "Its golden vectors were given at the import."
             : "It has no golden vectors: that it loads is checked, what it answers is not.");
}

absl::StatusOr<std::string> ManifestText(const Manifest& manifest) {
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  if (!printer.PrintToString(manifest, &text)) {
    return absl::InternalError("the manifest cannot be printed");
  }
  return "# Made by `mk import vmamba`.\n" + text;
}

absl::StatusOr<std::string> Labels(const std::string& path, int64_t classes) {
  std::string text;
  if (path.empty()) {
    for (int64_t i = 0; i < classes; ++i) absl::StrAppend(&text, "class ", i, "\n");
    return text;
  }
  MK_ASSIGN_OR_RETURN(text, ReadWholeFile(path, kMaxLabelsBytes));
  text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
  if (!text.empty() && text.back() != '\n') text += '\n';
  int64_t lines = 0;
  for (size_t begin = 0; begin < text.size(); ++lines) {
    const size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t") == line.npos || line.find('\0') != line.npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("labels '", Printable(path), "', line ", lines + 1, " is empty or no text"));
    }
    begin = end + 1;
  }
  if (lines != classes) {
    return absl::InvalidArgumentError(absl::StrCat("labels '", Printable(path), "' has ", lines,
                                                   " lines, the checkpoint has ", classes,
                                                   " classes; one label a line"));
  }
  return text;
}

absl::StatusOr<std::string> ReadGoldenFile(const std::string& path, const Manifest& manifest) {
  MK_ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(path, kMaxGoldenBytes));
  const auto cases = ReadGolden(bytes, SignatureOf(manifest));
  if (cases.ok()) return bytes;
  return absl::Status(cases.status().code(),
                      absl::StrCat("golden '", Printable(path), "': ", cases.status().message()));
}

}  // namespace mk
