// How often something may happen: so many at once, so many a second over time.
#ifndef MERGEKERNEL_CORE_BASE_TOKEN_BUCKET_H_
#define MERGEKERNEL_CORE_BASE_TOKEN_BUCKET_H_

#include <algorithm>
#include <cstdint>

namespace mk {

// Not thread-safe. Pure but for its state: time comes in.
class TokenBucket {
 public:
  // REQUIRES burst >= 1, per_second > 0. Begins full.
  TokenBucket(double burst, double per_second)
      : burst_(burst), per_second_(per_second), tokens_(burst) {}

  // Takes a token where there is one. `now_ns` never goes back.
  bool Take(int64_t now_ns) {
    if (last_ns_ != 0) {
      const double elapsed = static_cast<double>(now_ns - last_ns_) * 1e-9;
      tokens_ = std::min(burst_, tokens_ + elapsed * per_second_);
    }
    last_ns_ = now_ns;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  const double burst_;
  const double per_second_;
  double tokens_;
  int64_t last_ns_ = 0;
};

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_TOKEN_BUCKET_H_
