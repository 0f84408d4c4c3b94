// Counter-based values for weights and inputs, equal bit for bit to packs/vmamba/train/generator.py
// (the definition is in packs/vmamba/golden/README.md), so that goldens store outputs only.
#ifndef MERGEKERNEL_KERNELS_TESTING_GENERATOR_H_
#define MERGEKERNEL_KERNELS_TESTING_GENERATOR_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace mk::testing {

uint64_t Fnv1a64(std::string_view name);

// `count` values in [low, high): those of the tensor `name` of `seed`.
std::vector<float> Generate(std::string_view name, uint64_t seed, int64_t count, float low,
                            float high);

// The range of a weight by the last component of its name.
std::pair<float, float> ValueRange(std::string_view name, const std::vector<int64_t>& shape);

// `Generate` with the range of `ValueRange`.
std::vector<float> GenerateByRule(std::string_view name, const std::vector<int64_t>& shape,
                                  uint64_t seed);

int64_t ElementCount(const std::vector<int64_t>& shape);

}  // namespace mk::testing

#endif  // MERGEKERNEL_KERNELS_TESTING_GENERATOR_H_
