// Images that the fake driver reads: the smallest cubin and PTX that name kernels.
#ifndef MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_IMAGE_H_
#define MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_IMAGE_H_

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace mk {

// ABI 7, as toolkits before 13 write it; 8 with `abi` 8.
inline std::string FakeCubin(int sm, const std::vector<std::string>& kernels, int abi = 7) {
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> sections(1);
  std::memset(&sections[0], 0, sizeof sections[0]);
  const auto add = [&](const std::string& name) {
    Elf64_Shdr section;
    std::memset(&section, 0, sizeof section);
    section.sh_name = static_cast<Elf64_Word>(names.size());
    names += name + '\0';
    sections.push_back(section);
  };
  for (const std::string& kernel : kernels) add(".text." + kernel);
  add(".shstrtab");
  Elf64_Ehdr header;
  std::memset(&header, 0, sizeof header);
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_ABIVERSION] = static_cast<unsigned char>(abi);
  header.e_machine = 190;
  header.e_flags = static_cast<Elf64_Word>(sm) << (abi >= 8 ? 8 : 0);
  header.e_shoff = sizeof header + names.size();
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shstrndx = static_cast<Elf64_Half>(sections.size() - 1);
  sections.back().sh_offset = sizeof header;
  sections.back().sh_size = names.size();
  std::string image(reinterpret_cast<const char*>(&header), sizeof header);
  image += names;
  image.append(reinterpret_cast<const char*>(sections.data()),
               sections.size() * sizeof(Elf64_Shdr));
  return image;
}

// Ends in NUL. `version` "8.0" is what CUDA 12.0 reads.
inline std::string FakePtx(int sm, const std::vector<std::string>& kernels,
                           const std::string& version = "8.0") {
  std::string text =
      ".version " + version + "\n.target sm_" + std::to_string(sm) + "\n.address_size 64\n";
  for (const std::string& kernel : kernels) text += ".visible .entry " + kernel + "()\n{ ret; }\n";
  return text + '\0';
}

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_TESTING_FAKE_IMAGE_H_
