// Logits to what people read: the most probable classes.
#ifndef MERGEKERNEL_SERVER_CLI_CLASSIFY_H_
#define MERGEKERNEL_SERVER_CLI_CLASSIFY_H_

#include <string>
#include <vector>

namespace mk::cli {

struct Ranked {
  size_t index = 0;
  double probability = 0;
  std::string label;  // "class 7" where the pack has no labels
};

// The `k` highest of `logits` by softmax, highest first; equal ones by index. NaN ranks last with
// probability 0.
std::vector<Ranked> TopK(const std::vector<float>& logits, size_t k,
                         const std::vector<std::string>& labels);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_CLASSIFY_H_
