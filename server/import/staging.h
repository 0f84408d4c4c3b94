// A version of a pack being made beside its place: <repository>/<pack>/.import-XXXXXX/, which no
// daemon takes for a version, renamed to <repository>/<pack>/<version>/ when all of it is there.
#ifndef MERGEKERNEL_SERVER_IMPORT_STAGING_H_
#define MERGEKERNEL_SERVER_IMPORT_STAGING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/loader/repository.h"

namespace mk {

// One thread. Blocks on the file system.
class Staging {
 public:
  // Makes the folder, and the pack's where it is new. Leftovers of imports that were killed are
  // removed (a running import holds a lock on its folder). NOT_FOUND when `repository` is no
  // folder, PERMISSION_DENIED when it cannot be written to.
  static absl::StatusOr<std::unique_ptr<Staging>> Create(const std::string& repository,
                                                         const std::string& pack);
  ~Staging();  // removes everything that was not published
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  int folder() const { return folder_.get(); }
  absl::StatusOr<Fd> NewFile(const std::string& name);
  absl::Status WriteFile(const std::string& name, std::string_view bytes);

  // All written files to the disk, then the rename. ALREADY_EXISTS when the version is there,
  // unless `replace`: then the two change places in one step and the old one is removed.
  absl::Status Publish(int64_t version, bool replace);

 private:
  Staging() = default;

  Fd pack_folder_;
  Fd folder_;
  Fd repository_;
  std::string pack_;
  std::string name_;  // of the folder, while it is there
  bool made_pack_folder_ = false;
};

// Versions that stand in <repository>/<pack>/, complete or not, ascending; none when there is no
// such pack.
std::vector<int64_t> VersionsOnDisk(const std::string& repository, const std::string& pack);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_IMPORT_STAGING_H_
