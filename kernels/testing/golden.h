// Golden files (safetensors) and the single-operator cases among them.
#ifndef MERGEKERNEL_KERNELS_TESTING_GOLDEN_H_
#define MERGEKERNEL_KERNELS_TESTING_GOLDEN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mk::testing {

struct GoldenTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;   // of F32 tensors
  std::vector<uint8_t> bytes;  // of U8 tensors
};

// A whole golden file. Ends the process with a message when the file cannot be read: a test without
// its goldens has nothing to say.
struct GoldenFile {
  std::map<std::string, GoldenTensor> tensors;
  std::map<std::string, std::string> metadata;

  // Ends the process when there is none of that name.
  const GoldenTensor& At(const std::string& name) const;
  int64_t Integer(const std::string& key) const;
  static GoldenFile Read(const std::string& path);
};

// One case of packs/vmamba/golden/ops.safetensors: inputs made by the generator, the stored output.
struct OpCase {
  std::string name;
  std::map<std::string, GoldenTensor> inputs;
  GoldenTensor output;
  std::map<std::string, double> attributes;

  // Ends the process when there is none of that name.
  const GoldenTensor& Input(const std::string& input) const;
};
std::vector<OpCase> ReadOpCases(const std::string& path, const std::string& op);

// Where that file stands in a test's runfiles.
inline constexpr char kOpGoldens[] = "packs/vmamba/golden/ops.safetensors";

// Row-major [rows, columns] to [columns, rows]. Channel-first [C, H, W] to channel-last [H, W, C]
// is Transposed(x, C, H * W), and back is Transposed(x, H * W, C).
template <typename T>
std::vector<T> Transposed(const std::vector<T>& values, int64_t rows, int64_t columns) {
  std::vector<T> out(values.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      out[static_cast<size_t>(c * rows + r)] = values[static_cast<size_t>(r * columns + c)];
    }
  }
  return out;
}

}  // namespace mk::testing

#endif  // MERGEKERNEL_KERNELS_TESTING_GOLDEN_H_
