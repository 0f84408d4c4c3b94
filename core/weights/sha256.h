// SHA-256 over bytes that come in pieces.
#ifndef MERGEKERNEL_CORE_WEIGHTS_SHA256_H_
#define MERGEKERNEL_CORE_WEIGHTS_SHA256_H_

#include <memory>
#include <string>
#include <string_view>

namespace mk {

// One thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Update(std::string_view bytes);
  std::string HexDigest();  // once, at the end; 64 lower-case digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(std::string_view bytes);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_WEIGHTS_SHA256_H_
