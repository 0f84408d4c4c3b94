// What a shared object says of itself, read from its bytes before it is mapped, and whether a pack
// may look like that.
#ifndef MERGEKERNEL_CORE_LOADER_ELF_FACTS_H_
#define MERGEKERNEL_CORE_LOADER_ELF_FACTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mk {

struct ElfFacts {
  uint16_t machine = 0;               // EM_X86_64, EM_AARCH64
  std::vector<std::string> needed;    // DT_NEEDED
  std::vector<std::string> exported;  // defined, global or weak, visible dynamic symbols
  std::vector<std::string> unique;    // those with STB_GNU_UNIQUE
  std::vector<std::string> versions;  // required symbol versions: "GLIBC_2.34", ...
  uint64_t constructors = 0;          // entries of .init_array
  bool has_tls = false;               // a PT_TLS segment
  bool has_text_relocations = false;
};

// Every offset is checked: any bytes are safe. INVALID_ARGUMENT for what is no little-endian ELF64
// shared object with section headers, naming what is broken.
absl::StatusOr<ElfFacts> ReadElfFacts(std::string_view bytes);

// Pure. INVALID_ARGUMENT naming the symbol or library that breaks a rule of the contract
// (docs/abi/).
absl::Status JudgeElf(const ElfFacts& facts);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_LOADER_ELF_FACTS_H_
