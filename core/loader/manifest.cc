#include "core/loader/manifest.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace mk {
namespace {

using mergekernel::v1::Manifest;
using mergekernel::v1::Tensor;

constexpr int kMaxTensors = 256;
constexpr int kMaxFiles = 256;
constexpr int kMaxLanes = 64;
constexpr uint64_t kMaxMemory = uint64_t{1} << 44;  // 16 TiB: no sum of ours overflows

// Keeps the first complaint of the text parser.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) text = absl::StrCat("line ", line + 1, ":", column + 1, ": ", message);
  }
  std::string text;
};

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("manifest: ", parts...));
}

absl::Status CheckTensors(const char* field,
                          const google::protobuf::RepeatedPtrField<Tensor>& tensors) {
  if (tensors.empty() || tensors.size() > kMaxTensors) {
    return Wrong(field, ": ", tensors.size(), " tensors, must be 1 to ", kMaxTensors);
  }
  std::set<std::string> names;
  for (const Tensor& tensor : tensors) {
    if (!IsPlainName(tensor.name())) {
      return Wrong(field, ": name '", Printable(tensor.name()), "' must be [A-Za-z0-9_.-]{1,128}");
    }
    if (!names.insert(tensor.name()).second) {
      return Wrong(field, ": '", tensor.name(), "' is named twice");
    }
    if (DtypeFromName(tensor.datatype()) == MK_DTYPE_INVALID) {
      return Wrong(field, ": '", tensor.name(), "': unknown datatype '",
                   Printable(tensor.datatype()), "'");
    }
    if (tensor.shape_size() > static_cast<int>(MK_MAX_RANK)) {
      return Wrong(field, ": '", tensor.name(), "': rank ", tensor.shape_size(), " > ",
                   MK_MAX_RANK);
    }
    for (const int64_t dim : tensor.shape()) {
      if (dim < -1) return Wrong(field, ": '", tensor.name(), "': dim ", dim, " < -1");
    }
  }
  return absl::OkStatus();
}

bool IsDigest(const std::string& text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

absl::Status CheckFiles(const Manifest& manifest) {
  if (manifest.files_size() > kMaxFiles) {
    return Wrong("files: ", manifest.files_size(), " entries, the limit is ", kMaxFiles);
  }
  std::set<std::string> names;
  for (const auto& file : manifest.files()) {
    if (!IsPlainName(file.name()) || file.name()[0] == '.' || file.name() == kManifestName) {
      return Wrong("files: name '", Printable(file.name()), "' must be a plain file name");
    }
    if (!names.insert(file.name()).second) {
      return Wrong("files: '", file.name(), "' is named twice");
    }
    if (!IsDigest(file.sha256())) {
      return Wrong("files: '", file.name(), "': sha256 must be 64 lower-case hex digits");
    }
  }
  const auto require = [&](const char* field, const std::string& name) -> absl::Status {
    for (const auto& file : manifest.files()) {
      if (file.name() == name && file.kind() == mergekernel::v1::File::SMALL) {
        return absl::OkStatus();
      }
    }
    return Wrong(field, " '", Printable(name), "' is not among the small files");
  };
  MK_RETURN_IF_ERROR(require("code.file", manifest.code().file()));
  if (manifest.has_golden()) MK_RETURN_IF_ERROR(require("golden.file", manifest.golden().file()));
  if (!manifest.labels_file().empty()) {
    MK_RETURN_IF_ERROR(require("labels_file", manifest.labels_file()));
  }
  return absl::OkStatus();
}

absl::Status CheckCode(const mergekernel::v1::Code& code) {
  if (!IsPlainName(code.name())) return Wrong("code.name '", Printable(code.name()), "'");
  if (code.version() < 1) return Wrong("code.version ", code.version(), " < 1");
  if (code.abi_major() != static_cast<int>(MK_ABI_MAJOR)) {
    return Wrong("code.abi_major ", code.abi_major(), ", this host speaks ", MK_ABI_MAJOR);
  }
  if (code.abi_minor() < 0 || code.abi_minor() > static_cast<int>(MK_ABI_MINOR)) {
    return Wrong("code.abi_minor ", code.abi_minor(), ", this host speaks up to ", MK_ABI_MINOR);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Manifest> ParseManifest(std::string_view text) {
  if (text.size() > kMaxManifestBytes) {
    return Wrong(text.size(), " bytes, the limit is ", kMaxManifestBytes);
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  Manifest manifest;
  if (!parser.ParseFromString(std::string(text), &manifest)) {
    return Wrong(Printable(error.text, 400));
  }
  return manifest;
}

absl::Status ValidateManifest(const Manifest& manifest, const std::string& folder,
                              int64_t version) {
  if (manifest.name() != folder) {
    return Wrong("name '", Printable(manifest.name()), "' in the folder of '", folder, "'");
  }
  if (manifest.version() != version) {
    return Wrong("version ", manifest.version(), " in the folder of version ", version);
  }
  MK_RETURN_IF_ERROR(CheckCode(manifest.code()));
  MK_RETURN_IF_ERROR(CheckFiles(manifest));
  MK_RETURN_IF_ERROR(CheckTensors("inputs", manifest.inputs()));
  MK_RETURN_IF_ERROR(CheckTensors("outputs", manifest.outputs()));
  if (manifest.devices().empty()) return Wrong("devices: none is named");
  for (const std::string& device : manifest.devices()) {
    if (device != "cpu" && device != "cuda") {
      return Wrong("devices: unknown device '", Printable(device), "'");
    }
  }
  if (manifest.lanes() < 0 || manifest.lanes() > kMaxLanes) {
    return Wrong("lanes ", manifest.lanes(), " not in 0..", kMaxLanes);
  }
  const auto& memory = manifest.memory();
  if (std::max({memory.weights_bytes(), memory.scratch_bytes(), memory.state_bytes(),
                memory.device_scratch_bytes()}) > kMaxMemory) {
    return Wrong("memory: a region passes ", kMaxMemory, " bytes");
  }
  for (const int spot : manifest.blind_spots()) {
    if (spot < 1 || spot > 5) return Wrong("blind_spots: ", spot, " not in 1..5");
  }
  const auto& golden = manifest.golden();  // an absent one is all zeros
  if (!(golden.max_rel_l2() >= 0 && golden.max_rel_l2() <= 1)) {
    return Wrong("golden.max_rel_l2 ", golden.max_rel_l2(), " not in 0..1");
  }
  if (!(golden.max_rel_l2_fp16() >= 0 && golden.max_rel_l2_fp16() <= 1)) {
    return Wrong("golden.max_rel_l2_fp16 ", golden.max_rel_l2_fp16(), " not in 0..1");
  }
  return absl::OkStatus();
}

Signature SignatureOf(const Manifest& manifest) {
  const auto convert = [](const google::protobuf::RepeatedPtrField<Tensor>& tensors) {
    std::vector<TensorSpec> specs;
    for (const Tensor& tensor : tensors) {
      specs.push_back({tensor.name(),
                       DtypeFromName(tensor.datatype()),
                       {tensor.shape().begin(), tensor.shape().end()},
                       tensor.optional()});
    }
    return specs;
  };
  return {convert(manifest.inputs()), convert(manifest.outputs())};
}

uint64_t ScratchBytesOn(const Manifest& manifest, const std::string& device_kind) {
  const auto& memory = manifest.memory();
  return device_kind == "cpu" || memory.device_scratch_bytes() == 0 ? memory.scratch_bytes()
                                                                    : memory.device_scratch_bytes();
}

double GoldenToleranceOn(const Manifest& manifest, const std::string& device_kind) {
  const auto& golden = manifest.golden();
  return device_kind == "cpu" || golden.max_rel_l2_fp16() == 0 ? golden.max_rel_l2()
                                                               : golden.max_rel_l2_fp16();
}

int LanesOf(const Manifest& manifest) { return std::max(1, manifest.lanes()); }

}  // namespace mk
