// What a fuzz target consists of: one function over bytes, and the inputs to begin with. Targets
// stand beside the code they try, in files that end in _fuzz.cc; `mk_fuzz` (fuzz.bzl) builds each
// twice.
#ifndef MERGEKERNEL_TESTS_FUZZ_FUZZ_H_
#define MERGEKERNEL_TESTS_FUZZ_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// libFuzzer's entry. Any bytes; returns 0; a broken promise ends the process (FUZZ_CHECK).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace mk::fuzz {

// Small, well-formed and nearly well-formed inputs.
std::vector<std::string> Seeds();

}  // namespace mk::fuzz

#define FUZZ_CHECK(condition)                                                              \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      std::fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                        \
    }                                                                                      \
  } while (false)

#endif  // MERGEKERNEL_TESTS_FUZZ_FUZZ_H_
