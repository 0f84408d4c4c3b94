#include "server/import/vmamba.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/loader/manifest.h"
#include "core/loader/sealed_pack.h"
#include "core/weights/sha256.h"
#include "packs/vmamba/import/layout.h"
#include "server/import/pack_library_file.h"
#include "server/import/staging.h"
#include "server/import/vmamba_manifest.h"

namespace mk {
namespace {

using mergekernel::v1::Manifest;

constexpr char kCodeName[] = "vmamba";
constexpr char kWeightsFile[] = "model.safetensors";
constexpr char kGoldenFile[] = "golden.safetensors";
constexpr char kLabelsFile[] = "labels.txt";
constexpr uint64_t kMaxSmallBytes = uint64_t{512} << 20;
// Golden vectors come from another implementation, and run on CPUs of all kinds.
constexpr double kGoldenMaxRelL2 = 1e-4;
constexpr double kGoldenMaxRelL2Fp16 = 1e-2;  // pico reaches 3e-3; deeper models round more often

absl::Status FromPack(const Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.code()), status.message());
}

absl::Status CheckName(const std::string& name) {
  if (IsPlainName(name) && name[0] != '.' && name[0] != '-') return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--name '", Printable(name), "' must be [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"));
}

struct OpenedCheckpoint {
  std::unique_ptr<CheckpointStream> stream;
  const char* source = "";
};

absl::StatusOr<OpenedCheckpoint> Open(const VMambaImport& options) {
  Fd fd(open(options.checkpoint.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.ok()) {
    return absl::NotFoundError(std::strerror(errno));
  }
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError("is no plain file");
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  char first[512];
  const ssize_t got = pread(fd.get(), first, sizeof first, 0);
  if (got < 0) return absl::DataLossError(std::strerror(errno));
  MK_ASSIGN_OR_RETURN(const CheckpointKind kind,
                      SniffCheckpoint(std::string_view(first, static_cast<size_t>(got)), size));
  OpenedCheckpoint opened;
  if (kind == CheckpointKind::kSafetensors) {
    opened.source = "safetensors";
    MK_ASSIGN_OR_RETURN(opened.stream, OpenSafetensors(std::move(fd), size));
  } else {
    opened.source = "torch";
    MK_ASSIGN_OR_RETURN(opened.stream, OpenTorchCheckpoint(std::move(fd), size, options.torch));
  }
  return opened;
}

absl::Status CheckLayout(const vmamba::CheckpointLayout& layout, size_t stored) {
  if (layout.problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("not a VMamba checkpoint that this pack can serve (", layout.taken.size(),
                   " of its ", stored, " tensors fit; ", layout.problems.size(),
                   layout.problems.size() == 1 ? " difference" : " differences", "):\n  ",
                   ListProblems(layout.problems)));
}

// What the import decides before a byte is copied.
struct Decided {
  VMambaImported result;
  vmamba::Description description;
  vmamba::DeclaredMemory memory;
  std::vector<CopiedTensor> tensors;  // as CopyWeights wants them
};

std::map<std::string, std::string> AllParameters(const VMambaImport& options,
                                                 const vmamba::CheckpointLayout& layout) {
  std::map<std::string, std::string> all = layout.config;
  all["preprocess.resize"] = absl::StrCat(options.resize);
  all["preprocess.crop"] = absl::StrCat(options.crop);
  all["preprocess.pad"] = "0";
  all["preprocess.channels"] = all["config.in_chans"];
  all["preprocess.filter"] = options.filter;
  all["preprocess.mean"] = options.mean;
  all["preprocess.std"] = options.std;
  all["preprocess.max_encoded_pixels"] = absl::StrCat(options.max_encoded_pixels);
  if (options.crop == 0)
    all["preprocess.max_input_pixels"] = absl::StrCat(options.max_input_pixels);
  return all;
}

std::string Licence(const VMambaImport& options, const vmamba::CheckpointLayout& layout) {
  if (!options.licence.empty()) return options.licence;
  if (!layout.published_name.empty() && layout.published_head) {
    return "MIT (that of the published VMamba weights, which these have the sizes of; not "
           "verified)";
  }
  return "not stated at the import";
}

absl::Status DecideVersion(const VMambaImport& options, VMambaImported* result) {
  const std::vector<int64_t> there = VersionsOnDisk(options.repository, result->name);
  result->version = options.version != 0 ? options.version : there.empty() ? 1 : there.back() + 1;
  if (result->version < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--version ", result->version, " must be at least 1"));
  }
  if (!options.force && std::binary_search(there.begin(), there.end(), result->version)) {
    return absl::AlreadyExistsError(absl::StrCat("'", result->name, "' has a version ",
                                                 result->version, " already; --force replaces it"));
  }
  return absl::OkStatus();
}

void NoteWhatWasLeft(const vmamba::CheckpointLayout& layout, const SafetensorsHeader& header,
                     std::vector<std::string>* notes) {
  if (!layout.stripped_prefix.empty()) {
    notes->push_back(
        absl::StrCat("the prefix '", layout.stripped_prefix, "' was taken off every name"));
  }
  if (!layout.dropped.empty()) {
    notes->push_back(absl::StrCat(layout.dropped.size(),
                                  " tensors of bookkeeping left out, the first '",
                                  Printable(header.tensors[layout.dropped[0]].name), "'"));
  }
}

absl::StatusOr<Decided> Decide(const VMambaImport& options, const OpenedCheckpoint& checkpoint) {
  const SafetensorsHeader& header = checkpoint.stream->header();
  std::vector<vmamba::StoredTensorSpec> specs;
  for (const StoredTensor& tensor : header.tensors) specs.push_back({tensor.name, tensor.shape});
  const vmamba::CheckpointLayout layout = vmamba::ReadLayout(specs, options.strip_prefix);
  MK_RETURN_IF_ERROR(CheckLayout(layout, header.tensors.size()));

  Decided decided;
  VMambaImported& result = decided.result;
  result.source = checkpoint.source;
  result.parameters = AllParameters(options, layout);
  result.licence = Licence(options, layout);
  result.notes = checkpoint.stream->notes();
  NoteWhatWasLeft(layout, header, &result.notes);
  const auto description = vmamba::DescriptionOf(result.parameters);
  if (!description.ok()) return FromPack(description.status());
  decided.description = *description;
  decided.memory = vmamba::DeclareMemory(decided.description);

  result.name = !options.name.empty()           ? options.name
                : layout.published_name.empty() ? "vmamba"
                                                : absl::StrCat("vmamba-", layout.published_name);
  MK_RETURN_IF_ERROR(CheckName(result.name));
  MK_RETURN_IF_ERROR(DecideVersion(options, &result));
  CopiedTensor skipped;
  skipped.skipped = true;
  decided.tensors.assign(header.tensors.size(), skipped);
  for (const vmamba::TakenTensor& taken : layout.taken) {
    decided.tensors[taken.index] = {false, taken.name, taken.shape};
  }
  result.tensors = layout.taken.size();
  return decided;
}

// Writes the small files into the folder and into the manifest.
class SmallFiles {
 public:
  SmallFiles(Staging& staging, Manifest& manifest) : staging_(staging), manifest_(manifest) {}
  absl::Status Add(const std::string& name, const std::string& bytes) {
    AddFile(name, Sha256Hex(bytes), mergekernel::v1::File::SMALL, &manifest_);
    return staging_.WriteFile(name, bytes);
  }

 private:
  Staging& staging_;
  Manifest& manifest_;
};

absl::StatusOr<VMambaImported> Install(const VMambaImport& options, Decided decided,
                                       CheckpointStream& stream) {
  VMambaImported& result = decided.result;
  std::vector<std::string> repositories = {options.repository};
  repositories.insert(repositories.end(), options.more_repositories.begin(),
                      options.more_repositories.end());
  MK_ASSIGN_OR_RETURN(const PackLibraryFile library,
                      FindPackLibrary(kCodeName, options.pack, repositories));
  result.library = library.path;
  Manifest manifest = MakeManifest(
      result, {library.code, decided.memory, decided.description.num_classes, options.lanes});
  MK_ASSIGN_OR_RETURN(const std::string labels,
                      Labels(options.labels, decided.description.num_classes));
  std::string golden;
  if (!options.golden.empty()) {
    MK_ASSIGN_OR_RETURN(golden, ReadGoldenFile(options.golden, manifest));
    manifest.mutable_golden()->set_file(kGoldenFile);
    manifest.mutable_golden()->set_max_rel_l2(kGoldenMaxRelL2);
    manifest.mutable_golden()->set_max_rel_l2_fp16(kGoldenMaxRelL2Fp16);
  }

  MK_ASSIGN_OR_RETURN(const std::unique_ptr<Staging> staging,
                      Staging::Create(options.repository, result.name));
  SmallFiles small(*staging, manifest);
  MK_RETURN_IF_ERROR(small.Add(library.code.file(), library.bytes));
  MK_RETURN_IF_ERROR(small.Add(kLabelsFile, labels));
  if (!golden.empty()) MK_RETURN_IF_ERROR(small.Add(kGoldenFile, golden));
  std::map<std::string, std::string> metadata = result.parameters;
  metadata["provenance.weights_licence"] = result.licence;
  MK_ASSIGN_OR_RETURN(const Fd weights, staging->NewFile(kWeightsFile));
  MK_ASSIGN_OR_RETURN(const CopiedFile copied,
                      CopyWeights(stream, decided.tensors, metadata, weights.get(), options.hooks));
  AddFile(kWeightsFile, copied.sha256, mergekernel::v1::File::WEIGHTS, &manifest);
  result.elements = copied.parameters;
  result.weights_file_bytes = copied.size_bytes;
  for (const std::string& name : copied.all_zero) {
    // log(1): how a block of state 1 begins.
    if (name.size() > 7 && name.compare(name.size() - 7, 7, ".A_logs") == 0) continue;
    result.notes.push_back(absl::StrCat("tensor '", name, "' is zero throughout"));
  }
  manifest.set_description(Sentence(result, decided.description.num_classes, !golden.empty()));
  MK_ASSIGN_OR_RETURN(const std::string text, ManifestText(manifest));
  MK_RETURN_IF_ERROR(staging->WriteFile(kManifestName, text));
  // The daemon's own eyes, before anything shows.
  const auto sealed =
      SealedPack::Read(staging->folder(), result.name, result.version, kMaxSmallBytes, "mk-import");
  if (!sealed.ok()) {
    return absl::Status(sealed.status().code(),
                        absl::StrCat("the version that was made: ", sealed.status().message()));
  }
  if (options.hooks.stop && options.hooks.stop()) {
    return absl::CancelledError("stopped; nothing was installed");
  }
  MK_RETURN_IF_ERROR(staging->Publish(result.version, options.force));
  result.folder = absl::StrCat(options.repository, "/", result.name, "/", result.version);
  return std::move(result);
}

}  // namespace

absl::StatusOr<VMambaImported> ImportVMamba(const VMambaImport& options) {
  const auto named = [&options](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("import of '", Printable(options.checkpoint),
                                                    "': ", status.message()));
  };
  const auto opened = Repository::Open(options.repository);
  if (!opened.ok()) return opened.status();
  auto checkpoint = Open(options);
  if (!checkpoint.ok()) return named(checkpoint.status());
  auto decided = Decide(options, *checkpoint);
  if (!decided.ok()) return named(decided.status());
  auto installed = Install(options, *std::move(decided), *checkpoint->stream);
  if (!installed.ok()) return named(installed.status());
  return installed;
}

}  // namespace mk
