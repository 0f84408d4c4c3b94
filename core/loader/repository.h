// The repository on disk: <root>/<pack>/<version>/. Nothing outside of the root is ever opened,
// whatever names and symbolic links say.
#ifndef MERGEKERNEL_CORE_LOADER_REPOSITORY_H_
#define MERGEKERNEL_CORE_LOADER_REPOSITORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace mk {

// A file descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }  // the caller's to close

 private:
  int fd_ = -1;
};

// Any thread. Blocks on the file system.
class Repository {
 public:
  // NOT_FOUND when `root` is no folder that can be read.
  static absl::StatusOr<std::unique_ptr<Repository>> Open(const std::string& root);

  // Folders with plain names, ascending.
  std::vector<std::string> Packs() const;
  bool Has(const std::string& pack) const;

  // What stands below a pack's folder: complete versions (with a manifest) ascending, versions
  // without one, and the names of what is ignored because it is no version ("03", "v4", "11.tmp").
  struct Versions {
    std::vector<int64_t> complete;
    std::vector<int64_t> incomplete;
    std::vector<std::string> ignored;
  };
  absl::StatusOr<Versions> ListVersions(const std::string& pack) const;  // NOT_FOUND

  // The folder of one version, opened.
  absl::StatusOr<Fd> OpenVersion(const std::string& pack, int64_t version) const;

 private:
  explicit Repository(Fd root) : root_(std::move(root)) {}
  const Fd root_;
};

// Opens `name` below the folder `dir` for reading; a path or link that leaves the folder is
// refused. `directory`: it must be one; otherwise it must be a plain file.
absl::StatusOr<Fd> OpenBeneath(int dir, const std::string& name, bool directory);

// Names in a folder, without "." and "..", ascending.
std::vector<std::string> ListNames(int dir);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_REPOSITORY_H_
