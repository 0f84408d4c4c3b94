// What the serving bench sends: a few requests that stand for the traffic of a daemon.
#ifndef MERGEKERNEL_TESTS_BENCH_CASES_H_
#define MERGEKERNEL_TESTS_BENCH_CASES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/abi/mk_pack.h"

namespace mk {

// One input of one pack, and the same content in every request.
struct BenchCase {
  std::string name;   // as --cases and the tables call it
  std::string model;  // the pack
  std::string input;
  mk_dtype dtype = MK_DTYPE_INVALID;
  std::vector<int64_t> shape;
  std::vector<uint8_t> content;
  bool echoes = false;  // whether the one output must equal the input
};

// "echo-1KiB", "echo-1MiB" and "vmamba-pico" (a 28x28 grey picture).
std::vector<BenchCase> AllCases();

// The case of that name.
std::optional<BenchCase> FindCase(const std::string& name);

}  // namespace mk

#endif  // MERGEKERNEL_TESTS_BENCH_CASES_H_
