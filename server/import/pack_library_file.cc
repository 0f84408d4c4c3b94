#include "server/import/pack_library_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/abi/mk_pack.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/loader/elf_facts.h"
#include "core/loader/manifest.h"
#include "core/loader/pack_library.h"
#include "core/loader/repository.h"
#include "core/loader/sealed_pack.h"
#include "core/weights/sha256.h"

namespace mk {
namespace {

constexpr uint64_t kMaxLibraryBytes = uint64_t{256} << 20;

// What the library's entry says of it.
absl::StatusOr<mergekernel::v1::Code> ReadCode(const std::string& bytes,
                                               const std::string& code_name) {
  MK_ASSIGN_OR_RETURN(const ElfFacts facts, ReadElfFacts(bytes));
  MK_RETURN_IF_ERROR(JudgeElf(facts));
  MK_ASSIGN_OR_RETURN(const std::unique_ptr<SealedFile> sealed,
                      SealedFile::FromBytes(bytes, "mk-import-pack"));
  const std::string path = absl::StrCat("/proc/self/fd/", sealed->fd());
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("does not load: ", Printable(dlerror(), 400)));
  }
  const auto close = std::unique_ptr<void, int (*)(void*)>(handle, &dlclose);
  const auto* entry = static_cast<const mk_pack*>(dlsym(handle, MK_PACK_ENTRY_SYMBOL));
  if (entry == nullptr) return absl::InvalidArgumentError("has no " MK_PACK_ENTRY_SYMBOL);
  mergekernel::v1::Code code;
  code.set_file("pack.so");
  code.set_name(code_name);
  // Judged before the fields behind it are believed.
  if (entry->magic == MK_PACK_MAGIC && entry->struct_size >= MK_PACK_SIZE_1_0) {
    code.set_version(static_cast<int64_t>(entry->code_version));
    code.set_abi_major(static_cast<int>(entry->abi_major));
    code.set_abi_minor(static_cast<int>(entry->abi_minor));
  }
  MK_RETURN_IF_ERROR(JudgeEntry(*entry, code));
  return code;
}

absl::Status Named(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("pack library '", Printable(path), "': ", status.message()));
}

absl::StatusOr<PackLibraryFile> Read(const std::string& path, const std::string& code_name) {
  PackLibraryFile library;
  library.path = path;
  auto bytes = ReadWholeFile(path, kMaxLibraryBytes);
  if (!bytes.ok()) return bytes.status();
  library.bytes = *std::move(bytes);
  auto code = ReadCode(library.bytes, code_name);
  if (!code.ok()) return Named(path, code.status());
  library.code = *std::move(code);
  return library;
}

// The digest that `manifest` gives for its code file, when its code is `code_name`; else "".
std::string CodeDigest(const mergekernel::v1::Manifest& manifest, const std::string& code_name) {
  if (manifest.code().name() != code_name) return "";
  for (const auto& file : manifest.files()) {
    if (file.name() == manifest.code().file()) return file.sha256();
  }
  return "";
}

// The best of one repository so far in `best`.
void Search(const std::string& root, const std::string& code_name, PackLibraryFile* best) {
  const auto repository = Repository::Open(root);
  if (!repository.ok()) return;
  for (const std::string& pack : (*repository)->Packs()) {
    const auto versions = (*repository)->ListVersions(pack);
    if (!versions.ok()) continue;
    for (const int64_t version : versions->complete) {
      const std::string folder = absl::StrCat(root, "/", pack, "/", version);
      const auto text = ReadWholeFile(absl::StrCat(folder, "/", kManifestName), kMaxManifestBytes);
      if (!text.ok()) continue;
      const auto manifest = ParseManifest(*text);
      if (!manifest.ok()) continue;
      const std::string digest = CodeDigest(*manifest, code_name);
      if (digest.empty() || !IsPlainName(manifest->code().file()) ||
          manifest->code().version() <= best->code.version()) {
        continue;
      }
      auto library = Read(absl::StrCat(folder, "/", manifest->code().file()), code_name);
      if (library.ok() && Sha256Hex(library->bytes) == digest) *best = *std::move(library);
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, uint64_t limit) {
  const auto named = absl::StrCat("'", Printable(path), "'");
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.ok()) return absl::NotFoundError(absl::StrCat(named, ": ", std::strerror(errno)));
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(named, " is no plain file"));
  }
  if (static_cast<uint64_t>(info.st_size) > limit) {
    return absl::InvalidArgumentError(
        absl::StrCat(named, " has ", info.st_size, " bytes, the limit is ", limit));
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(fd.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::DataLossError(absl::StrCat(named, " cannot be read to its end"));
    done += static_cast<size_t>(got);
  }
  return bytes;
}

absl::StatusOr<PackLibraryFile> FindPackLibrary(const std::string& code_name,
                                                const std::string& given,
                                                const std::vector<std::string>& repositories) {
  if (!given.empty()) {
    struct stat info = {};
    const bool folder = stat(given.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    return Read(folder ? given + "/pack.so" : given, code_name);
  }
  PackLibraryFile best;
  for (const std::string& repository : repositories) {
    Search(repository, code_name, &best);
    if (!best.bytes.empty()) return best;
  }
  return absl::NotFoundError(absl::StrCat("no installed pack with the code '", code_name, "' in ",
                                          absl::StrJoin(repositories, ", "),
                                          "; name its library: --pack FILE (bazel-bin/packs/",
                                          code_name, "/", code_name, ".so after a build)"));
}

}  // namespace mk
