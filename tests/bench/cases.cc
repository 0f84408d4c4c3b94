#include "tests/bench/cases.h"

#include <utility>

namespace mk {
namespace {

// Not constant and not random: the same bytes everywhere, and none of them alike for long.
std::vector<uint8_t> Pattern(size_t size) {
  std::vector<uint8_t> bytes(size);
  uint32_t state = 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

BenchCase Echo(std::string name, int64_t size) {
  return {std::move(name),
          "echo",
          "INPUT0",
          MK_DTYPE_UINT8,
          {size},
          Pattern(static_cast<size_t>(size)),
          true};
}

}  // namespace

std::vector<BenchCase> AllCases() {
  return {
      Echo("echo-1KiB", 1 << 10),
      Echo("echo-1MiB", 1 << 20),
      {"vmamba-pico", "vmamba-pico", "image", MK_DTYPE_UINT8, {28, 28, 1}, Pattern(784), false}};
}

std::optional<BenchCase> FindCase(const std::string& name) {
  for (BenchCase& candidate : AllCases()) {
    if (candidate.name == name) return candidate;
  }
  return std::nullopt;
}

}  // namespace mk
