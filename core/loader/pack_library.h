// The mapped code of one generation: dlopen from sealed memory, the judgement of its entry, and an
// unload that proves itself.
#ifndef MERGEKERNEL_CORE_LOADER_PACK_LIBRARY_H_
#define MERGEKERNEL_CORE_LOADER_PACK_LIBRARY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/abi/mk_pack.h"
#include "core/loader/sealed_pack.h"

namespace mk {

// What the fields of `entry` say against this host and the manifest. Pure; calls nothing of the
// pack. INVALID_ARGUMENT naming the field and both values.
absl::Status JudgeEntry(const mk_pack& entry, const mergekernel::v1::Code& code);

// One thread at a time; not from a lane's thread.
class PackLibrary {
 public:
  // Judges the ELF file, then maps it (RTLD_NOW: nothing is left to fail later; RTLD_LOCAL), then
  // judges its entry. INVALID_ARGUMENT with the loader's own words, without paths, when it does not
  // load. `pack` may be let go of after.
  static absl::StatusOr<std::unique_ptr<PackLibrary>> Load(const SealedPack& pack);
  ~PackLibrary();  // closes

  const mk_pack& entry() const { return *entry_; }

  // Unmaps. True when no executable mapping of it is left in /proc/self/maps; false when it stays
  // or that cannot be told (retired: the caller counts it). REQUIRES that no code of the pack runs
  // or will run.
  bool Close();

 private:
  PackLibrary(Fd fd, void* handle, std::string mapped_name)
      : fd_(std::move(fd)), handle_(handle), mapped_name_(std::move(mapped_name)) {}

  // The dynamic loader takes a path it has loaded before for the same library. So the number in
  // /proc/self/fd/N stays taken as long as the mapping does: for good, when it cannot be unmapped.
  Fd fd_;
  void* handle_;
  const std::string mapped_name_;  // "memfd:..." as /proc/self/maps shows it; unique per generation
  const mk_pack* entry_ = nullptr;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_PACK_LIBRARY_H_
