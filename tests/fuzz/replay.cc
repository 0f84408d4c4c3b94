// Runs a fuzz target over its seeds and their near neighbours: every truncation, every flipped byte
// of the first kilobytes, each 4-byte word set to what breaks lengths. What libFuzzer does by
// coverage on demand, the default test run does by this list.
//   X_replay               the list
//   X_replay --dump DIR    writes the seeds there, for libFuzzer
//   X_replay FILE...       those files: a finding again
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/fuzz/fuzz.h"

namespace {

constexpr size_t kLongest = 4096;

uint64_t runs = 0;

// A copy of exactly that size, so that an overrun is seen by ASan.
void Run(const std::string& bytes) {
  const std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
  ++runs;
}

void RunNeighbours(const std::string& seed) {
  Run(seed);
  const size_t tried = std::min(seed.size(), kLongest);
  for (size_t size = 0; size < tried; ++size) Run(seed.substr(0, size));
  std::string bytes = seed;
  for (size_t i = 0; i < tried; ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      bytes[i] = static_cast<char>(seed[i] ^ flip);
      Run(bytes);
    }
    bytes[i] = seed[i];
  }
  for (size_t i = 0; i + 4 <= tried; i += 4) {
    for (const uint32_t word : {0u, 0x7fffffffu, 0xffffffffu}) {
      std::memcpy(&bytes[i], &word, sizeof word);
      Run(bytes);
    }
    std::memcpy(&bytes[i], &seed[i], 4);
  }
}

int Dump(const std::string& folder) {
  const std::vector<std::string> seeds = mk::fuzz::Seeds();
  for (size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream out(folder + "/seed-" + std::to_string(i), std::ios::binary);
    out << seeds[i];
    if (!out.good()) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--dump") == 0) return Dump(argv[2]);
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    Run(std::string(std::istreambuf_iterator<char>(in), {}));
  }
  if (argc == 1) {
    for (const std::string& seed : mk::fuzz::Seeds()) RunNeighbours(seed);
    // A target without seeds would pass without its subject.
    if (runs < 100) {
      std::fprintf(stderr, "only %llu inputs were tried\n", static_cast<unsigned long long>(runs));
      return 1;
    }
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(runs));
  return 0;
}
