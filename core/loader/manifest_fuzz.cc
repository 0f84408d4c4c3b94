// A manifest from anywhere: what is accepted has a signature, and judging it has no surprises.
#include "core/loader/manifest.h"
#include "tests/fuzz/fuzz.h"

namespace mk::fuzz {

std::vector<std::string> Seeds() {
  const std::string digest(64, '0');
  return {R"(name: "echo" version: 1
code { file: "pack.so" name: "echo" version: 1 abi_major: 1 abi_minor: 0 }
files { name: "pack.so" sha256: ")" +
              digest + R"(" }
devices: "cpu"
inputs { name: "INPUT0" datatype: "FP32" shape: -1 shape: 3 }
outputs { name: "OUTPUT0" datatype: "FP32" shape: -1 shape: 3 }
memory { weights_bytes: 0 scratch_bytes: 4096 }
lanes: 2
parameters { key: "config.depths" value: "2-2-2-1" }
)",
          "name: \"a\\377\"", "", "name { }", "lanes: 99999999999999999999"};
}

}  // namespace mk::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto manifest = mk::ParseManifest({reinterpret_cast<const char*>(data), size});
  if (!manifest.ok()) return 0;
  if (!mk::ValidateManifest(*manifest, manifest->name(), manifest->version()).ok()) return 0;
  const mk::Signature signature = mk::SignatureOf(*manifest);
  FUZZ_CHECK(signature.inputs.size() == static_cast<size_t>(manifest->inputs_size()));
  FUZZ_CHECK(mk::LanesOf(*manifest) >= 1);
  return 0;
}
