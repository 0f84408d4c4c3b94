#include "kernels/testing/generator.h"

#include <cmath>

namespace mk::testing {
namespace {

// The finaliser of splitmix64.
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::string_view LastComponent(std::string_view name) {
  const size_t separator = name.find_last_of("./");
  return separator == name.npos ? name : name.substr(separator + 1);
}

// sqrt(3 / fan_in), in double, then rounded.
std::pair<float, float> ByFanIn(int64_t fan_in) {
  const auto a = static_cast<float>(std::sqrt(3.0 / static_cast<double>(fan_in)));
  return {-a, a};
}

}  // namespace

uint64_t Fnv1a64(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

std::vector<float> Generate(std::string_view name, uint64_t seed, int64_t count, float low,
                            float high) {
  std::vector<float> values(static_cast<size_t>(count));
  uint64_t counter = seed + Fnv1a64(name);
  const float span = high - low;
  for (float& value : values) {
    counter += 0x9E3779B97F4A7C15u;
    const float u = static_cast<float>(Mix(counter) >> 40) * 0x1p-24f;
    value = low + span * u;
  }
  return values;
}

std::pair<float, float> ValueRange(std::string_view name, const std::vector<int64_t>& shape) {
  const std::string_view last = LastComponent(name);
  if (last == "A_logs") return {-1.0f, 1.0f};
  if (last == "Ds") return {0.5f, 1.5f};
  if (last == "dt_projs_bias") return {-4.0f, 1.0f};
  if (last == "bias") return {-0.1f, 0.1f};
  if (last == "x_proj_weight" || last == "dt_projs_weight") return ByFanIn(shape.back());
  if (last == "weight" && shape.size() == 1) return {0.9f, 1.1f};
  if (last == "weight") return ByFanIn(ElementCount({shape.begin() + 1, shape.end()}));
  return {-1.0f, 1.0f};
}

std::vector<float> GenerateByRule(std::string_view name, const std::vector<int64_t>& shape,
                                  uint64_t seed) {
  const auto [low, high] = ValueRange(name, shape);
  return Generate(name, seed, ElementCount(shape), low, high);
}

int64_t ElementCount(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

}  // namespace mk::testing
