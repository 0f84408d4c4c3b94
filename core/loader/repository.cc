#include "core/loader/repository.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/loader/manifest.h"
#include "core/loader/version_policy.h"

namespace mk {
namespace {

// openat2 lets the kernel refuse what leaves `dir`. Kernels before 5.6 lack it, and sandboxes that
// do not know it forbid it: there no link is followed at all, which is stricter and as safe, since
// `name` is a plain name.
int OpenNoEscape(int dir, const char* name, int flags) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = syscall(SYS_openat2, dir, name, &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  return openat(dir, name, flags | O_NOFOLLOW);
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<Fd> OpenBeneath(int dir, const std::string& name, bool directory) {
  if (!IsPlainName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(name), "' is no plain file name"));
  }
  // O_NONBLOCK: a pipe put there would otherwise hold the daemon.
  Fd fd(OpenNoEscape(dir, name.c_str(),
                     O_RDONLY | O_CLOEXEC | O_NONBLOCK | (directory ? O_DIRECTORY : 0)));
  if (!fd.ok()) {
    if (errno == EXDEV || errno == ELOOP) {
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' leaves its folder by a link"));
    }
    return absl::NotFoundError(absl::StrCat("'", name, "': ", std::strerror(errno)));
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0 || (!directory && !S_ISREG(info.st_mode))) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no plain file"));
  }
  return fd;
}

std::vector<std::string> ListNames(int dir) {
  std::vector<std::string> names;
  // A second open gives a position of its own, so that several threads can list at once.
  const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = fd >= 0 ? fdopendir(fd) : nullptr;
  if (stream == nullptr) return names;
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::unique_ptr<Repository>> Repository::Open(const std::string& root) {
  Fd fd(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.ok()) {
    return absl::NotFoundError(
        absl::StrCat("repository '", Printable(root), "': ", std::strerror(errno)));
  }
  return std::unique_ptr<Repository>(new Repository(std::move(fd)));
}

std::vector<std::string> Repository::Packs() const {
  std::vector<std::string> packs;
  for (const std::string& name : ListNames(root_.get())) {
    if (Has(name)) packs.push_back(name);
  }
  return packs;
}

bool Repository::Has(const std::string& pack) const {
  return OpenBeneath(root_.get(), pack, /*directory=*/true).ok();
}

absl::StatusOr<Repository::Versions> Repository::ListVersions(const std::string& pack) const {
  MK_ASSIGN_OR_RETURN(const Fd folder, OpenBeneath(root_.get(), pack, /*directory=*/true));
  Versions versions;
  for (const std::string& name : ListNames(folder.get())) {
    const absl::StatusOr<int64_t> version = ParseVersion(name);
    if (!version.ok()) {
      versions.ignored.push_back(Printable(name, 60));
      continue;
    }
    const absl::StatusOr<Fd> inside = OpenBeneath(folder.get(), name, /*directory=*/true);
    const bool complete = inside.ok() && OpenBeneath(inside->get(), kManifestName, false).ok();
    (complete ? versions.complete : versions.incomplete).push_back(*version);
  }
  std::sort(versions.complete.begin(), versions.complete.end());
  std::sort(versions.incomplete.begin(), versions.incomplete.end());
  return versions;
}

absl::StatusOr<Fd> Repository::OpenVersion(const std::string& pack, int64_t version) const {
  MK_ASSIGN_OR_RETURN(const Fd folder, OpenBeneath(root_.get(), pack, /*directory=*/true));
  return OpenBeneath(folder.get(), absl::StrCat(version), /*directory=*/true);
}

}  // namespace mk
