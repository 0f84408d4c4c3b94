#include "core/weights/sha256.h"

#include <openssl/evp.h>

#include <cstdio>
#include <cstdlib>

namespace mk {
namespace {

// Only a lack of memory makes these fail; there is nothing to be saved then.
void Require(int result) {
  if (result == 1) return;
  std::fputs("SHA-256 is not to be had from libcrypto\n", stderr);
  std::abort();
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  Require(state_->context != nullptr ? 1 : 0);
  Require(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::Update(std::string_view bytes) {
  Require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
}

std::string Sha256::HexDigest() {
  static constexpr char kHex[] = "0123456789abcdef";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  Require(EVP_DigestFinal_ex(state_->context, digest, &size));
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += {kHex[digest[i] >> 4], kHex[digest[i] & 15]};
  return hex;
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.HexDigest();
}

}  // namespace mk
