#include "core/loader/elf_facts.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/abi/mk_pack.h"
#include "core/base/checked.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace mk {
namespace {

#ifdef MK_SANITIZED
constexpr bool kSanitized =
    true;  // the sanitizers add a library, a constructor and symbols of their own
#else
constexpr bool kSanitized = false;
#endif

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#endif

absl::Status Broken(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("pack library: no valid ELF file: ", what));
}

// Reads structures at any offset of the bytes, or nothing.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  std::optional<T> At(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  // The NUL-ended string at `offset` of the table [begin, begin + size).
  std::optional<std::string> Text(const Elf64_Shdr& table, uint64_t offset) const {
    if (table.sh_offset > bytes_.size() || bytes_.size() - table.sh_offset < table.sh_size ||
        offset >= table.sh_size) {
      return std::nullopt;
    }
    const std::string_view rest = bytes_.substr(table.sh_offset + offset, table.sh_size - offset);
    const size_t end = rest.find('\0');
    if (end == rest.npos) return std::nullopt;
    return std::string(rest.substr(0, end));
  }
  uint64_t size() const { return bytes_.size(); }

 private:
  const std::string_view bytes_;
};

// Walks the sections of one file into an ElfFacts.
class Walker {
 public:
  explicit Walker(std::string_view bytes) : reader_(bytes) {}

  absl::StatusOr<ElfFacts> Walk() {
    MK_RETURN_IF_ERROR(Header());
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_DYNAMIC) MK_RETURN_IF_ERROR(Dynamic(section));
      if (section.sh_type == SHT_DYNSYM) MK_RETURN_IF_ERROR(Symbols(section));
      if (section.sh_type == SHT_GNU_verneed) MK_RETURN_IF_ERROR(Versions(section));
      if (section.sh_type == SHT_INIT_ARRAY)
        facts_.constructors = section.sh_size / sizeof(uint64_t);
    }
    return facts_;
  }

 private:
  absl::Status Header() {
    const auto header = reader_.At<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return Broken("magic");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
      return Broken("it is not 64-bit little-endian");
    }
    if (header->e_type != ET_DYN) return Broken("it is no shared object");
    facts_.machine = header->e_machine;
    if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shnum == 0) {
      return Broken("no section headers");
    }
    for (uint64_t i = 0; i < header->e_shnum; ++i) {
      const auto at = CheckedAdd(header->e_shoff, i * sizeof(Elf64_Shdr));
      const auto section = at ? reader_.At<Elf64_Shdr>(*at) : std::nullopt;
      if (!section) return Broken("section headers pass the file");
      sections_.push_back(*section);
    }
    for (uint64_t i = 0; i < header->e_phnum; ++i) {
      const auto at = CheckedAdd(header->e_phoff, i * sizeof(Elf64_Phdr));
      const auto segment = at ? reader_.At<Elf64_Phdr>(*at) : std::nullopt;
      if (!segment) return Broken("program headers pass the file");
      if (segment->p_type == PT_TLS) facts_.has_tls = true;
      const auto end = CheckedAdd(segment->p_offset, segment->p_filesz);
      if (segment->p_type == PT_LOAD && (!end || *end > reader_.size())) {
        return Broken("a segment passes the file: it is truncated");
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Elf64_Shdr> Strings(const Elf64_Shdr& section) const {
    if (section.sh_link >= sections_.size()) return Broken("a string table is missing");
    return sections_[section.sh_link];
  }

  absl::Status Dynamic(const Elf64_Shdr& section) {
    MK_ASSIGN_OR_RETURN(const Elf64_Shdr strings, Strings(section));
    for (uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Dyn); ++i) {
      const auto at = CheckedAdd(section.sh_offset, i * sizeof(Elf64_Dyn));
      const auto entry = at ? reader_.At<Elf64_Dyn>(*at) : std::nullopt;
      if (!entry) return Broken("the dynamic section passes the file");
      if (entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_TEXTREL) facts_.has_text_relocations = true;
      if (entry->d_tag == DT_NEEDED) {
        const auto name = reader_.Text(strings, entry->d_un.d_val);
        if (!name) return Broken("the name of a needed library");
        facts_.needed.push_back(*name);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Symbols(const Elf64_Shdr& section) {
    MK_ASSIGN_OR_RETURN(const Elf64_Shdr strings, Strings(section));
    for (uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      const auto at = CheckedAdd(section.sh_offset, i * sizeof(Elf64_Sym));
      const auto symbol = at ? reader_.At<Elf64_Sym>(*at) : std::nullopt;
      if (!symbol) return Broken("the symbol table passes the file");
      const unsigned binding = ELF64_ST_BIND(symbol->st_info);
      if (symbol->st_shndx == SHN_UNDEF || binding == STB_LOCAL) continue;
      const auto name = reader_.Text(strings, symbol->st_name);
      if (!name) return Broken("the name of a symbol");
      if (binding == STB_GNU_UNIQUE) facts_.unique.push_back(*name);
      const unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);
      if (visibility == STV_DEFAULT || visibility == STV_PROTECTED)
        facts_.exported.push_back(*name);
    }
    return absl::OkStatus();
  }

  absl::Status Versions(const Elf64_Shdr& section) {
    MK_ASSIGN_OR_RETURN(const Elf64_Shdr strings, Strings(section));
    uint64_t at = section.sh_offset;
    // A bound on the steps, since a file may chain its entries in a ring.
    for (int files = 0; files < 256; ++files) {
      const auto need = reader_.At<Elf64_Verneed>(at);
      if (!need) return Broken("version needs pass the file");
      uint64_t aux_at = at + need->vn_aux;
      for (int i = 0; i < need->vn_cnt && i < 256; ++i) {
        const auto aux = reader_.At<Elf64_Vernaux>(aux_at);
        const auto name = aux ? reader_.Text(strings, aux->vna_name) : std::nullopt;
        if (!name) return Broken("version needs pass the file");
        facts_.versions.push_back(*name);
        aux_at += aux->vna_next;
      }
      if (need->vn_next == 0) break;
      at += need->vn_next;
    }
    return absl::OkStatus();
  }

  const Reader reader_;
  std::vector<Elf64_Shdr> sections_;
  ElfFacts facts_;
};

bool IsAllowedLibrary(const std::string& name) {
  static constexpr std::array<std::string_view, 4> kAllowed = {"libc.so.6", "libm.so.6",
                                                               "libstdc++.so.6", "libgcc_s.so.1"};
  static constexpr std::array<std::string_view, 3> kSanitizers = {"libasan.", "libubsan.",
                                                                  "libtsan."};
  const auto begins = [&](std::string_view prefix) { return name.rfind(prefix, 0) == 0; };
  return std::find(kAllowed.begin(), kAllowed.end(), name) != kAllowed.end() ||
         begins("ld-linux-") ||
         (kSanitized && std::any_of(kSanitizers.begin(), kSanitizers.end(), begins));
}

template <typename... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("pack library: ", parts...));
}

}  // namespace

absl::StatusOr<ElfFacts> ReadElfFacts(std::string_view bytes) { return Walker(bytes).Walk(); }

absl::Status JudgeElf(const ElfFacts& facts) {
  if (facts.machine != kMachine) {
    return Refuse("built for ELF machine ", facts.machine, ", this host is ", kMachine);
  }
  for (const std::string& library : facts.needed) {
    if (!IsAllowedLibrary(library)) {
      return Refuse("needs '", Printable(library),
                    "'; a pack may need libc, libm, libstdc++ and libgcc_s alone");
    }
  }
  if (!facts.unique.empty()) {
    return Refuse("symbol '", Printable(facts.unique[0]),
                  "' is STB_GNU_UNIQUE: it would never be unloaded (link with mk_pack)");
  }
  bool entry = false;
  for (const std::string& symbol : facts.exported) {
    if (symbol == MK_PACK_ENTRY_SYMBOL) {
      entry = true;
    } else if (!kSanitized) {
      return Refuse("exports '", Printable(symbol), "' beside '", MK_PACK_ENTRY_SYMBOL, "'");
    }
  }
  if (!entry) return Refuse("does not export '", MK_PACK_ENTRY_SYMBOL, "'");
  if (facts.has_tls) return Refuse("has thread_local variables, which would outlive its unloading");
  if (facts.has_text_relocations) return Refuse("has text relocations (build with -fPIC)");
  // One entry is the C runtime's own.
  if (facts.constructors > 1 && !kSanitized) {
    return Refuse("has ", facts.constructors - 1, " static constructors, which may not be");
  }
  return absl::OkStatus();
}

}  // namespace mk
