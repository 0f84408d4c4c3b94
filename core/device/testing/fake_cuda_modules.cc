// The fake driver's modules: reads cubins (ELF) and PTX as far as names, SM and version go.
#include <elf.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/device/testing/fake_cuda_state.h"

using namespace mk;        // NOLINT
using namespace mk::fake;  // NOLINT
using mk::cu::Result;

namespace {

constexpr int kCudaMachine = 190;  // EM_CUDA

// The kernels of a cubin: its sections ".text.<name>".
std::set<std::string> CubinKernels(const char* image, const Elf64_Ehdr& header) {
  std::set<std::string> names;
  Elf64_Shdr strings;
  const auto section = [&](int i, Elf64_Shdr* out) {
    std::memcpy(out, image + header.e_shoff + static_cast<size_t>(i) * sizeof *out, sizeof *out);
  };
  section(header.e_shstrndx, &strings);
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr entry;
    section(i, &entry);
    const std::string name = image + strings.sh_offset + entry.sh_name;
    if (name.rfind(".text.", 0) == 0) names.insert(name.substr(6));
  }
  return names;
}

// The SM stands in the lowest byte up to ABI 7 and one byte higher from 8 on.
int CubinSm(const Elf64_Ehdr& header) {
  const unsigned shift = header.e_ident[EI_ABIVERSION] >= 8 ? 8 : 0;
  return static_cast<int>(header.e_flags >> shift & 0xFF);
}

Result LoadCubin(State& s, const char* image, ModuleObject& module) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (header.e_machine != kCudaMachine) return cu::kInvalidImage;
  // Ours: what a 12.x driver really says of a cubin of 13.x was never tried.
  if (header.e_ident[EI_ABIVERSION] >= 8 && s.machine.driver_version < 13000) {
    return cu::kInvalidImage;
  }
  if (CubinSm(header) != s.machine.sm) return cu::kNoBinaryForGpu;
  module.kernels = CubinKernels(image, header);
  return cu::kSuccess;
}

Result LoadPtx(State& s, const std::string& text, ModuleObject& module, std::string* log) {
  int major = 0, minor = 0, target = 0;
  const size_t version = text.find(".version ");
  const size_t sm = text.find(".target sm_");
  if (version == std::string::npos || sm == std::string::npos ||
      std::sscanf(text.c_str() + version, ".version %d.%d", &major, &minor) != 2 ||
      std::sscanf(text.c_str() + sm, ".target sm_%d", &target) != 1) {
    *log = "ptxas fatal: no .version or .target";
    return cu::kInvalidPtx;
  }
  // PTX 8.x came with CUDA 12.x, 9.0 with 13.0.
  if (major * 1000 + minor * 10 + 4000 > s.machine.driver_version) {
    *log =
        "ptxas fatal: unsupported .version " + std::to_string(major) + "." + std::to_string(minor);
    return cu::kUnsupportedPtxVersion;
  }
  if (target > s.machine.sm) return cu::kNoBinaryForGpu;
  if (text.find("SYNTAX ERROR") != std::string::npos) {
    *log = "ptxas error: line 4: syntax error near 'SYNTAX'";
    return cu::kInvalidPtx;
  }
  const std::string entry = ".entry ";
  for (size_t at = text.find(entry); at != std::string::npos; at = text.find(entry, at + 1)) {
    const size_t begin = at + entry.size();
    module.kernels.insert(text.substr(begin, text.find('(', begin) - begin));
  }
  return cu::kSuccess;
}

}  // namespace

FAKE Result cuModuleLoadDataEx(cu::Module* module, const void* image, unsigned option_count,
                               int* options, void** values) {
  return Enter("cuModuleLoadDataEx", kContext | kNoCapture, [&](State& s) -> Result {
    if (option_count != 2 || options[0] != cu::kJitErrorLogBuffer ||
        options[1] != cu::kJitErrorLogBufferBytes) {
      return Violation("options are not the error log and its size"), cu::kInvalidValue;
    }
    const char* bytes = static_cast<const char*>(image);
    ModuleObject made;
    made.context = Current();
    std::string log;
    Result result = cu::kInvalidImage;
    if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0) {
      result = LoadCubin(s, bytes, made);
    } else if (std::strstr(bytes, ".version") != nullptr) {
      result = LoadPtx(s, bytes, made, &log);
    }
    const size_t room = reinterpret_cast<size_t>(values[1]);
    std::snprintf(static_cast<char*>(values[0]), room, "%s", log.c_str());
    if (result != cu::kSuccess) return result;
    const Handle handle = s.next_handle += 16;
    s.modules[handle] = std::move(made);
    *module = reinterpret_cast<cu::Module>(handle);
    return cu::kSuccess;
  });
}

FAKE Result cuModuleUnload(cu::Module module) {
  return Enter("cuModuleUnload", kContext | kNoCapture, [&](State& s) -> Result {
    if (FindHere(s.modules, module, "module") == nullptr) return cu::kInvalidHandle;
    const Handle handle = reinterpret_cast<Handle>(module);
    for (const auto& [stream_handle, stream] : s.streams) {
      for (const Op& op : stream.pending) {
        const auto function = s.functions.find(op.function);
        if (function != s.functions.end() && function->second.module == handle) {
          Violation("a kernel of it is under way");
        }
      }
    }
    for (auto function = s.functions.begin(); function != s.functions.end();) {
      function = function->second.module == handle ? s.functions.erase(function) : ++function;
    }
    s.modules.erase(handle);
    return cu::kSuccess;
  });
}

FAKE Result cuModuleGetFunction(cu::Function* function, cu::Module module, const char* name) {
  return Enter("cuModuleGetFunction", kContext, [&](State& s) -> Result {
    const ModuleObject* found = FindHere(s.modules, module, "module");
    if (found == nullptr) return cu::kInvalidHandle;
    if (found->kernels.count(name) == 0) return cu::kNotFound;
    if (s.kernels.count(name) == 0) return Violation("nobody registered it"), cu::kNotFound;
    const Handle handle = s.next_handle += 16;
    s.functions[handle] = {reinterpret_cast<Handle>(module), name, 0};
    *function = reinterpret_cast<cu::Function>(handle);
    return cu::kSuccess;
  });
}

FAKE Result cuFuncGetAttribute(int* value, int attribute, cu::Function function) {
  return Enter("cuFuncGetAttribute", kContext, [&](State& s) -> Result {
    const FunctionObject* found = Find(s.functions, function, "function");
    if (found == nullptr) return cu::kInvalidHandle;
    const KernelEntry& kernel = s.kernels.at(found->name);
    switch (attribute) {
      case cu::kFunctionMaxThreadsPerBlock:
        *value = static_cast<int>(kernel.most_threads);
        return cu::kSuccess;
      case cu::kFunctionSharedBytes:
        *value = static_cast<int>(kernel.static_shared);
        return cu::kSuccess;
      default:
        return Violation("attribute"), cu::kInvalidValue;
    }
  });
}

FAKE Result cuFuncSetAttribute(cu::Function function, int attribute, int value) {
  return Enter("cuFuncSetAttribute", kContext, [&](State& s) -> Result {
    FunctionObject* found = Find(s.functions, function, "function");
    if (found == nullptr) return cu::kInvalidHandle;
    const KernelEntry& kernel = s.kernels.at(found->name);
    if (attribute != cu::kFunctionMaxDynamicSharedBytes || value < 0 ||
        value > s.machine.shared_per_block - static_cast<int>(kernel.static_shared)) {
      return Violation("attribute or value"), cu::kInvalidValue;
    }
    found->dynamic_shared = value;
    return cu::kSuccess;
  });
}
