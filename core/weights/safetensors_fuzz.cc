// A safetensors file from anywhere: what is accepted keeps its promises.
#include <cstring>

#include "core/weights/safetensors.h"
#include "tests/fuzz/fuzz.h"

namespace mk::fuzz {

std::vector<std::string> Seeds() {
  const auto file = [](const std::string& json, size_t data) {
    const uint64_t size = json.size();
    std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
    return bytes + json + std::string(data, '\0');
  };
  return {
      file(R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})", 16),
      file(R"({"__metadata__":{"k":"v"},"b":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}})", 2),
      file(R"({"a":{"dtype":"U8","shape":[0,3],"data_offsets":[0,0]},)"
           R"("c":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})",
           2),
      file("{}", 0),
      file(R"({"a":{"dtype":"I64","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8)};
}

}  // namespace mk::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto view = mk::SafetensorsView::Parse(bytes);
  if (!view.ok()) return 0;
  uint64_t at = 0;
  for (const mk::StoredTensor& tensor : view->header().tensors) {
    FUZZ_CHECK(tensor.begin == at && tensor.end >= tensor.begin);
    at = tensor.end;
    const std::string_view held = view->Data(tensor);
    FUZZ_CHECK(held.size() == tensor.end - tensor.begin);
    FUZZ_CHECK(held.empty() || (held.data() >= bytes.data() &&
                                held.data() + held.size() <= bytes.data() + bytes.size()));
    FUZZ_CHECK(view->header().Find(tensor.name) != nullptr);
  }
  FUZZ_CHECK(view->header().data_offset + at == size);
  return 0;
}
