#include "server/import/staging.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/import/copy_weights.h"

namespace mk {
namespace {

constexpr char kPrefix[] = ".import-";
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

absl::Status Errno(const std::string& what, int error) {
  const std::string message = absl::StrCat(what, ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(message);
  }
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

// Removes the folder `name` of `parent` with the plain files in it; a pack's version has no others.
void RemoveFolder(int parent, const std::string& name) {
  const Fd folder(openat(parent, name.c_str(), kFolder));
  if (!folder.ok()) return;
  for (const std::string& file : ListNames(folder.get())) unlinkat(folder.get(), file.c_str(), 0);
  unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

// Folders of imports that ended without cleaning up: nobody holds their lock any more.
void RemoveLeftovers(int pack_folder) {
  for (const std::string& name : ListNames(pack_folder)) {
    if (name.compare(0, sizeof kPrefix - 1, kPrefix) != 0) continue;
    const Fd folder(openat(pack_folder, name.c_str(), kFolder));
    if (folder.ok() && flock(folder.get(), LOCK_EX | LOCK_NB) == 0) RemoveFolder(pack_folder, name);
  }
}

// Renames within `folder` unless `to` is there; errno tells why not.
bool RenameNew(int folder, const std::string& name, const std::string& to) {
  if (renameat2(folder, name.c_str(), folder, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  // A file system without the flag: a plain rename never replaces a folder that holds something.
  if (renameat(folder, name.c_str(), folder, to.c_str()) == 0) return true;
  if (errno == ENOTEMPTY) errno = EEXIST;
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Staging>> Staging::Create(const std::string& repository,
                                                         const std::string& pack) {
  auto staging = std::unique_ptr<Staging>(new Staging());
  const std::string named = absl::StrCat("repository '", Printable(repository), "'");
  staging->pack_ = pack;
  staging->repository_ = Fd(open(repository.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!staging->repository_.ok()) return Errno(named, errno);
  if (mkdirat(staging->repository_.get(), pack.c_str(), 0755) == 0) {
    staging->made_pack_folder_ = true;
  } else if (errno != EEXIST) {
    return Errno(named, errno);
  }
  staging->pack_folder_ = Fd(openat(staging->repository_.get(), pack.c_str(), kFolder));
  if (!staging->pack_folder_.ok()) return Errno(absl::StrCat(named, ", pack '", pack, "'"), errno);
  RemoveLeftovers(staging->pack_folder_.get());
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string name = absl::StrCat(kPrefix, getpid(), "-", attempt);
    if (mkdirat(staging->pack_folder_.get(), name.c_str(), 0755) != 0) {
      if (errno == EEXIST) continue;
      return Errno(absl::StrCat(named, ", pack '", pack, "'"), errno);
    }
    staging->name_ = name;
    break;
  }
  staging->folder_ = Fd(openat(staging->pack_folder_.get(), staging->name_.c_str(), kFolder));
  if (!staging->folder_.ok() || flock(staging->folder_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Errno(absl::StrCat(named, ", the import's own folder"), errno);
  }
  return staging;
}

Staging::~Staging() {
  if (!name_.empty()) RemoveFolder(pack_folder_.get(), name_);
  // Fails, as it should, where something stands in it.
  if (made_pack_folder_) unlinkat(repository_.get(), pack_.c_str(), AT_REMOVEDIR);
}

absl::StatusOr<Fd> Staging::NewFile(const std::string& name) {
  Fd fd(openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.ok()) return Errno(absl::StrCat("file '", name, "'"), errno);
  return fd;
}

absl::Status Staging::WriteFile(const std::string& name, std::string_view bytes) {
  MK_ASSIGN_OR_RETURN(const Fd fd, NewFile(name));
  return WriteAll(fd.get(), bytes);
}

absl::Status Staging::Publish(int64_t version, bool replace) {
  // Contents before names: after a power cut a version is whole or not there.
  for (const std::string& name : ListNames(folder_.get())) {
    const Fd file(openat(folder_.get(), name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.ok() || fsync(file.get()) != 0) {
      return Errno(absl::StrCat("file '", name, "'"), errno);
    }
  }
  fsync(folder_.get());
  const std::string place = absl::StrCat(version);
  const int from = pack_folder_.get();
  if (RenameNew(from, name_, place)) {
    name_.clear();
  } else if (errno == EEXIST && replace) {
    if (renameat2(from, name_.c_str(), from, place.c_str(), RENAME_EXCHANGE) != 0) {
      return Errno(absl::StrCat("version ", version), errno);
    }
    RemoveFolder(from, std::exchange(name_, ""));  // what stood there before
  } else if (errno == EEXIST) {
    return absl::AlreadyExistsError(absl::StrCat("version ", version, " of '", pack_,
                                                 "' is there already; --force replaces it"));
  } else {
    return Errno(absl::StrCat("version ", version), errno);
  }
  fsync(from);
  fsync(repository_.get());
  made_pack_folder_ = false;
  return absl::OkStatus();
}

std::vector<int64_t> VersionsOnDisk(const std::string& repository, const std::string& pack) {
  const auto opened = Repository::Open(repository);
  if (!opened.ok()) return {};
  const auto listed = (*opened)->ListVersions(pack);
  if (!listed.ok()) return {};
  std::vector<int64_t> versions = listed->complete;
  versions.insert(versions.end(), listed->incomplete.begin(), listed->incomplete.end());
  std::sort(versions.begin(), versions.end());
  return versions;
}

}  // namespace mk
