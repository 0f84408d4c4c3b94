// A .npy file from anywhere: what is accepted is written back to the same tensor.
#include "server/cli/npy.h"
#include "tests/fuzz/fuzz.h"

namespace mk::fuzz {

std::vector<std::string> Seeds() {
  return {*cli::WriteNpy({"FP32", {2, 3}, std::string(24, 'x')}),
          *cli::WriteNpy({"UINT8", {}, "x"}), *cli::WriteNpy({"FP64", {0, 4}, ""}),
          *cli::WriteNpy({"BOOL", {3}, std::string("\0\1\1", 3)})};
}

}  // namespace mk::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tensor = mk::cli::ParseNpy({reinterpret_cast<const char*>(data), size});
  if (!tensor.ok()) return 0;
  const auto file = mk::cli::WriteNpy(*tensor);
  FUZZ_CHECK(file.ok());
  const auto back = mk::cli::ParseNpy(*file);
  FUZZ_CHECK(back.ok() && back->data == tensor->data && back->shape == tensor->shape &&
             back->datatype == tensor->datatype);
  return 0;
}
