#include "core/loader/pack_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/loader/elf_facts.h"

namespace mk {
namespace {

template <typename A, typename B>
absl::Status Differs(const char* field, const A& has, const char* rule, const B& wants) {
  return absl::InvalidArgumentError(
      absl::StrCat("pack entry: ", field, " is ", has, ", ", rule, " ", wants));
}

// The name under which /proc/self/maps shows a memory file.
std::string MappedName(int fd) {
  char target[PATH_MAX];
  const ssize_t size = readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), target, sizeof target);
  if (size <= 0) return "";
  std::string name(target, static_cast<size_t>(size));
  const size_t deleted = name.find(" (deleted)");
  return name.substr(0, deleted);
}

// Whether executable memory of the library's unique name is left. (The sealed bytes are mapped too,
// to be read; the dynamic loader unmaps all segments of a library together.)
bool IsMapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  if (!maps) return true;  // nothing is proven then
  for (std::string line; std::getline(maps, line);) {
    // "start-end rwxp offset device inode path"
    const size_t permissions = line.find(' ') + 1;
    if (line.find(name) != line.npos && line.substr(permissions, 4).find('x') != line.npos)
      return true;
  }
  return false;
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._-+").find(c) != std::string_view::npos;
}

// The dynamic loader's words with every path cut to its file's name: they go to clients too.
std::string WithoutFolders(std::string_view words) {
  std::string out;
  for (size_t i = 0; i < words.size();) {
    const bool begins = words[i] == '/' && (i == 0 || !IsNameCharacter(words[i - 1]));
    if (!begins) {
      out += words[i++];
      continue;
    }
    size_t end = i;
    while (end < words.size() && (words[end] == '/' || IsNameCharacter(words[end]))) ++end;
    const std::string_view path = words.substr(i, end - i);
    out += path.substr(path.rfind('/') + 1);
    i = end;
  }
  return out;
}

}  // namespace

absl::Status JudgeEntry(const mk_pack& entry, const mergekernel::v1::Code& code) {
  if (entry.magic != MK_PACK_MAGIC) {
    return Differs("magic", absl::Hex(entry.magic), "this host looks for",
                   absl::Hex(MK_PACK_MAGIC));
  }
  if (entry.abi_major != MK_ABI_MAJOR) {
    return Differs("abi_major", entry.abi_major, "this host speaks", MK_ABI_MAJOR);
  }
  if (entry.abi_minor > MK_ABI_MINOR) {
    return Differs("abi_minor", entry.abi_minor, "this host speaks up to", MK_ABI_MINOR);
  }
  if (entry.struct_size < MK_PACK_SIZE_1_0) {
    return Differs("struct_size", entry.struct_size, "must be at least", MK_PACK_SIZE_1_0);
  }
  if (entry.name == nullptr || code.name() != entry.name) {
    return Differs("name", entry.name ? Printable(entry.name) : "null", "the manifest says",
                   code.name());
  }
  if (entry.code_version != static_cast<uint64_t>(code.version())) {
    return Differs("code_version", entry.code_version, "the manifest says", code.version());
  }
  if (entry.abi_minor != static_cast<uint32_t>(code.abi_minor())) {
    return Differs("abi_minor", entry.abi_minor, "the manifest says", code.abi_minor());
  }
  if (!entry.describe || !entry.create || !entry.run || !entry.destroy) {
    return Differs("function",
                   !entry.describe ? "describe"
                   : !entry.create ? "create"
                   : !entry.run    ? "run"
                                   : "destroy",
                   "which is null:", "all four must be there");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PackLibrary>> PackLibrary::Load(const SealedPack& pack) {
  const SealedFile& code = pack.code();
  MK_ASSIGN_OR_RETURN(const ElfFacts facts, ReadElfFacts(code.bytes()));
  MK_RETURN_IF_ERROR(JudgeElf(facts));
  Fd fd(fcntl(code.fd(), F_DUPFD_CLOEXEC, 3));
  if (!fd.ok()) {
    return absl::ResourceExhaustedError(absl::StrCat("pack library: ", std::strerror(errno)));
  }
  // The path is unique while the descriptor is open; glibc compares device and inode too, and each
  // memory file has its own, so a new generation is never taken for an old one.
  const std::string path = absl::StrCat("/proc/self/fd/", fd.get());
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* words = dlerror();
    const std::string named =
        absl::StrReplaceAll(words ? words : "unknown", {{path, pack.manifest.code().file()}});
    return absl::InvalidArgumentError(
        absl::StrCat("pack library does not load: ", Printable(WithoutFolders(named), 600)));
  }
  std::string mapped_name = MappedName(fd.get());
  auto library =
      std::unique_ptr<PackLibrary>(new PackLibrary(std::move(fd), handle, std::move(mapped_name)));
  library->entry_ = static_cast<const mk_pack*>(dlsym(handle, MK_PACK_ENTRY_SYMBOL));
  if (library->entry_ == nullptr) {
    return absl::InvalidArgumentError("pack library: mk_pack_entry cannot be found");
  }
  MK_RETURN_IF_ERROR(JudgeEntry(*library->entry_, pack.manifest.code()));
  return library;
}

PackLibrary::~PackLibrary() { Close(); }

bool PackLibrary::Close() {
  if (handle_ == nullptr) return true;
  dlclose(handle_);
  handle_ = nullptr;
  entry_ = nullptr;
  if (!mapped_name_.empty() && !IsMapped(mapped_name_)) {
    fd_ = Fd();
    return true;
  }
  fd_.Release();  // stays open on purpose: see fd_
  return false;
}

}  // namespace mk
