// Makes safetensors files for tests, good ones and such as no writer would make.
#ifndef MERGEKERNEL_CORE_WEIGHTS_TESTING_WRITE_SAFETENSORS_H_
#define MERGEKERNEL_CORE_WEIGHTS_TESTING_WRITE_SAFETENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace mk {

struct TestTensor {
  std::string name;
  std::string dtype;  // "F32", ...
  std::vector<int64_t> shape;
  std::string data;
};

// The length word, `json` as it is, and `data`.
std::string RawSafetensors(const std::string& json, const std::string& data);
// A well-formed file of `tensors`, in their order.
std::string WriteSafetensors(const std::vector<TestTensor>& tensors);
std::string FloatBytes(const std::vector<float>& values);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_WEIGHTS_TESTING_WRITE_SAFETENSORS_H_
