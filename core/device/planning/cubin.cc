// The layout is what nvcc 12.6 to 13.0 write, found by comparison with `ptxas -v`; NVIDIA documents
// only the ELF part. Attributes of `.nv.info`: 0x2f registers and 0x11 the frame, both as (symbol,
// value).
#include "core/device/planning/cubin.h"

#include <elf.h>

#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace mk {
namespace {

constexpr uint16_t kMachineCuda = 190;
constexpr uint8_t kSizedValue = 4;
constexpr uint8_t kRegisterCount = 0x2f, kFrameSize = 0x11;
// Since sm_90 a block's first KiB belongs to the driver, and the section counts it.
constexpr uint32_t kReservedShared = 1024;

absl::Status Broken(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("cubin: ", what));
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<std::map<std::string, KernelResources>> Read() {
    MK_RETURN_IF_ERROR(ReadSections());
    for (size_t i = 0; i < sections_.size(); ++i) {
      const std::string_view name = SectionName(i);
      if (name.substr(0, 6) == ".text.") kernels_[std::string(name.substr(6))];
      reserved_ = reserved_ || name == ".nv.shared.reserved.0";
    }
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (SectionName(i) == ".nv.info") MK_RETURN_IF_ERROR(ReadInfo(sections_[i]));
      ReadShared(i);
    }
    return std::move(kernels_);
  }

 private:
  // False where it does not lie within the file.
  template <typename T>
  bool Get(uint64_t offset, T* value) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + offset, sizeof(T));
    return true;
  }

  absl::Status ReadSections() {
    Elf64_Ehdr header;
    if (!Get(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachineCuda) {
      return Broken("no ELF64 file for CUDA");
    }
    if (header.e_shentsize != sizeof(Elf64_Shdr)) return Broken("odd section headers");
    sections_.resize(header.e_shnum);
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (header.e_shoff > bytes_.size() ||
          !Get(header.e_shoff + i * sizeof(Elf64_Shdr), &sections_[i])) {
        return Broken("section headers past its end");
      }
    }
    if (header.e_shstrndx >= sections_.size()) return Broken("no section names");
    names_ = header.e_shstrndx;
    return absl::OkStatus();
  }

  // The string at `offset` of the string table `section`; "" where there is none.
  std::string_view String(const Elf64_Shdr& section, uint64_t offset) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes_.size() ||
        section.sh_size > bytes_.size() - section.sh_offset || offset >= section.sh_size) {
      return "";
    }
    const std::string_view table = bytes_.substr(section.sh_offset, section.sh_size);
    const size_t end = table.find('\0', offset);
    return end == table.npos ? "" : table.substr(offset, end - offset);
  }
  std::string_view SectionName(size_t i) const {
    return String(sections_[names_], sections_[i].sh_name);
  }

  // "" for what is no symbol.
  std::string_view SymbolName(const Elf64_Shdr& info, uint32_t index) const {
    for (const Elf64_Shdr& table : sections_) {
      if (table.sh_type != SHT_SYMTAB || table.sh_link >= sections_.size()) continue;
      if (info.sh_link < sections_.size() && &table != &sections_[info.sh_link]) continue;
      Elf64_Sym symbol;
      if (index >= table.sh_size / sizeof symbol || table.sh_offset > bytes_.size() ||
          !Get(table.sh_offset + index * sizeof symbol, &symbol)) {
        return "";
      }
      return String(sections_[table.sh_link], symbol.st_name);
    }
    return "";
  }

  absl::Status ReadInfo(const Elf64_Shdr& section) {
    if (section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset) {
      return Broken(".nv.info past its end");
    }
    const uint64_t end = section.sh_offset + section.sh_size;
    for (uint64_t at = section.sh_offset; at + 4 <= end;) {
      const auto format = static_cast<uint8_t>(bytes_[at]);
      const auto attribute = static_cast<uint8_t>(bytes_[at + 1]);
      uint16_t size = 0;
      Get(at + 2, &size);
      at += 4;
      if (format != kSizedValue) continue;
      if (size > end - at) return Broken("an attribute past the end of .nv.info");
      uint32_t pair[2] = {};
      if (size >= sizeof pair && Get(at, &pair)) Apply(section, attribute, pair[0], pair[1]);
      at += size;
    }
    return absl::OkStatus();
  }

  void Apply(const Elf64_Shdr& info, uint8_t attribute, uint32_t symbol, uint32_t value) {
    const auto found = kernels_.find(std::string(SymbolName(info, symbol)));
    if (found == kernels_.end()) return;
    if (attribute == kRegisterCount) found->second.registers = static_cast<int>(value);
    if (attribute == kFrameSize) found->second.stack_bytes = value;
  }

  void ReadShared(size_t i) {
    const std::string_view name = SectionName(i);
    constexpr std::string_view kPrefix = ".nv.shared.";
    if (name.substr(0, kPrefix.size()) != kPrefix) return;
    const auto found = kernels_.find(std::string(name.substr(kPrefix.size())));
    if (found == kernels_.end() || sections_[i].sh_size > UINT32_MAX) return;
    const auto bytes = static_cast<uint32_t>(sections_[i].sh_size);
    const uint32_t reserved = reserved_ ? kReservedShared : 0;
    found->second.shared_bytes = bytes > reserved ? bytes - reserved : 0;
  }

  const std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  size_t names_ = 0;
  bool reserved_ = false;
  std::map<std::string, KernelResources> kernels_;
};

}  // namespace

absl::StatusOr<std::map<std::string, KernelResources>> ReadCubin(std::string_view bytes) {
  return Reader(bytes).Read();
}

}  // namespace mk
