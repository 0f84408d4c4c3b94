// A shared object from anywhere.
#include <elf.h>

#include <cstring>

#include "core/loader/elf_facts.h"
#include "tests/fuzz/fuzz.h"

namespace mk::fuzz {
namespace {

// The least that is read to the end: a header, and section headers for one string table and one
// table of dynamic symbols.
std::string TinyObject() {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  const std::string names("\0.dynstr\0.dynsym\0.dynamic\0mk_pack_entry\0libc.so.6\0", 51);
  Elf64_Sym symbols[2] = {};
  symbols[1].st_name = 26;
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  symbols[1].st_shndx = 1;
  const Elf64_Dyn dynamic[2] = {{DT_NEEDED, {40}}, {DT_NULL, {0}}};
  const size_t names_at = sizeof header, symbols_at = names_at + names.size();
  const size_t dynamic_at = symbols_at + sizeof symbols;
  header.e_shoff = dynamic_at + sizeof dynamic;
  Elf64_Shdr sections[4] = {};
  const auto fill = [](Elf64_Shdr& section, uint32_t type, size_t at, size_t size, size_t entry) {
    section.sh_type = type;
    section.sh_offset = at;
    section.sh_size = size;
    section.sh_entsize = entry;
    section.sh_link = 1;
  };
  fill(sections[1], SHT_STRTAB, names_at, names.size(), 0);
  fill(sections[2], SHT_DYNSYM, symbols_at, sizeof symbols, sizeof(Elf64_Sym));
  fill(sections[3], SHT_DYNAMIC, dynamic_at, sizeof dynamic, sizeof(Elf64_Dyn));
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += names;
  bytes.append(reinterpret_cast<const char*>(symbols), sizeof symbols);
  bytes.append(reinterpret_cast<const char*>(dynamic), sizeof dynamic);
  return bytes.append(reinterpret_cast<const char*>(sections), sizeof sections);
}

}  // namespace

std::vector<std::string> Seeds() { return {TinyObject(), std::string(ELFMAG, SELFMAG)}; }

}  // namespace mk::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto facts = mk::ReadElfFacts({reinterpret_cast<const char*>(data), size});
  if (facts.ok()) static_cast<void>(mk::JudgeElf(*facts));
  return 0;
}
