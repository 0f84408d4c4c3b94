#include "core/loader/sealed_pack.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/loader/manifest.h"
#include "core/weights/sha256.h"

namespace mk {
namespace {

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// What the kernel takes as the name of a memory file. Labels begin with what makes them unique.
constexpr size_t kMaxLabel = 249;

absl::StatusOr<Fd> NewMemory(const std::string& label) {
  Fd memory(memfd_create(label.substr(0, kMaxLabel).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.ok()) {
    return absl::InternalError(absl::StrCat("memfd_create: ", std::strerror(errno)));
  }
  return memory;
}

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      return absl::ResourceExhaustedError(absl::StrCat("sealed memory: ", std::strerror(errno)));
    }
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SealedFile::Map() {
  struct stat info;
  if (fstat(fd_.get(), &info) != 0) return absl::InternalError("sealed memory cannot be read");
  if (info.st_size == 0) return absl::OkStatus();
  const size_t size = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd_.get(), 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("sealed memory: ", std::strerror(errno)));
  }
  bytes_ = std::string_view(static_cast<const char*>(data), size);
  return absl::OkStatus();
}

SealedFile::~SealedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

absl::StatusOr<std::unique_ptr<SealedFile>> SealedFile::Copy(int fd, const std::string& label,
                                                             uint64_t limit) {
  MK_ASSIGN_OR_RETURN(Fd memory, NewMemory(label));
  std::vector<char> chunk(1 << 20);
  uint64_t total = 0;
  for (;;) {
    const ssize_t got = pread(fd, chunk.data(), chunk.size(), static_cast<off_t>(total));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::DataLossError(absl::StrCat("read: ", std::strerror(errno)));
    if (got == 0) break;
    total += static_cast<uint64_t>(got);
    if (total > limit) {
      return absl::InvalidArgumentError(
          absl::StrCat("is larger than the ", limit, " bytes left for small files"));
    }
    MK_RETURN_IF_ERROR(
        WriteAll(memory.get(), std::string_view(chunk.data(), static_cast<size_t>(got))));
  }
  if (fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    return absl::InternalError(absl::StrCat("sealing memory: ", std::strerror(errno)));
  }
  auto file = std::unique_ptr<SealedFile>(new SealedFile(std::move(memory)));
  MK_RETURN_IF_ERROR(file->Map());
  return file;
}

absl::StatusOr<std::unique_ptr<SealedFile>> SealedFile::FromBytes(std::string_view bytes,
                                                                  const std::string& label) {
  MK_ASSIGN_OR_RETURN(Fd memory, NewMemory(label));
  MK_RETURN_IF_ERROR(WriteAll(memory.get(), bytes));
  return Copy(memory.get(), label, bytes.size());
}

absl::StatusOr<std::unique_ptr<SealedFile>> SealedFile::Adopt(Fd fd) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return absl::InvalidArgumentError("the memory handed over is not sealed");
  }
  auto file = std::unique_ptr<SealedFile>(new SealedFile(std::move(fd)));
  MK_RETURN_IF_ERROR(file->Map());
  return file;
}

namespace {

absl::Status Named(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("file '", name, "': ", status.message()));
}

// A listed file that cannot be opened is the pack's fault, not an unknown name of the caller's.
absl::StatusOr<Fd> OpenListed(int folder, const std::string& name) {
  absl::StatusOr<Fd> fd = OpenBeneath(folder, name, /*directory=*/false);
  if (fd.ok()) return fd;
  return absl::InvalidArgumentError(absl::StrCat("file ", fd.status().message()));
}

absl::Status ReadSmall(int folder, const mergekernel::v1::File& file, const std::string& label,
                       uint64_t& left, SealedPack& pack) {
  MK_ASSIGN_OR_RETURN(const Fd fd, OpenListed(folder, file.name()));
  absl::StatusOr<std::unique_ptr<SealedFile>> sealed =
      SealedFile::Copy(fd.get(), absl::StrCat(label, "-", file.name()), left);
  if (!sealed.ok()) return Named(file.name(), sealed.status());
  const std::string digest = Sha256Hex((*sealed)->bytes());
  if (digest != file.sha256()) {
    return absl::DataLossError(absl::StrCat("file '", file.name(), "': digest ",
                                            digest.substr(0, 8), "..., the manifest says ",
                                            file.sha256().substr(0, 8), "..."));
  }
  left -= (*sealed)->bytes().size();
  pack.small[file.name()] = *std::move(sealed);
  return absl::OkStatus();
}

// The folder may hold what the manifest lists, and the manifest: a stray file is a half-made or
// tampered version.
absl::Status CheckNoSurplus(int folder, const SealedPack& pack) {
  for (const std::string& name : ListNames(folder)) {
    if (name != kManifestName && pack.small.count(name) == 0 && pack.weights.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "file '", Printable(name, 80), "' stands in the folder and not in the manifest"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SealedFile>> ReadManifestFile(int folder, const std::string& label) {
  MK_ASSIGN_OR_RETURN(const Fd fd, OpenListed(folder, kManifestName));
  absl::StatusOr<std::unique_ptr<SealedFile>> sealed =
      SealedFile::Copy(fd.get(), label, kMaxManifestBytes);
  if (!sealed.ok()) return Named(kManifestName, sealed.status());
  return sealed;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SealedPack>> SealedPack::Read(int version_folder,
                                                                   const std::string& name,
                                                                   int64_t version,
                                                                   uint64_t max_small_bytes,
                                                                   const std::string& label) {
  auto pack = std::make_shared<SealedPack>();
  MK_ASSIGN_OR_RETURN(pack->manifest_file,
                      ReadManifestFile(version_folder, absl::StrCat(label, "-manifest")));
  pack->digest = Sha256Hex(pack->manifest_file->bytes());
  MK_ASSIGN_OR_RETURN(pack->manifest, ParseManifest(pack->manifest_file->bytes()));
  MK_RETURN_IF_ERROR(ValidateManifest(pack->manifest, name, version));
  uint64_t left = max_small_bytes;
  for (const auto& file : pack->manifest.files()) {
    if (file.kind() == mergekernel::v1::File::WEIGHTS) {
      MK_ASSIGN_OR_RETURN(pack->weights[file.name()], OpenListed(version_folder, file.name()));
    } else {
      MK_RETURN_IF_ERROR(ReadSmall(version_folder, file, label, left, *pack));
    }
  }
  MK_RETURN_IF_ERROR(CheckNoSurplus(version_folder, *pack));
  return std::shared_ptr<const SealedPack>(std::move(pack));
}

std::string SealedPack::DigestOnDisk(int version_folder) {
  const auto manifest = ReadManifestFile(version_folder, "mk-manifest");
  return manifest.ok() ? Sha256Hex((*manifest)->bytes()) : "";
}

}  // namespace mk
