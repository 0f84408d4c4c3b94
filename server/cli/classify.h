// From logits to the k likeliest labels.
#ifndef MERGEKERNEL_SERVER_CLI_CLASSIFY_H_
#define MERGEKERNEL_SERVER_CLI_CLASSIFY_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mk::cli {

struct Guess {
  size_t index = 0;
  std::string label;  // "class 7" where no label is known
  double logit = 0;
  double probability = 0;
};

// One label a line; an end of line at the very end makes no label of its own.
std::vector<std::string> SplitLabels(std::string_view text);

// Softmax over all logits, the `k` largest, largest first; of equals the lower index first. NaN
// logits come last and make no probability of another NaN.
std::vector<Guess> TopK(const std::vector<double>& logits, const std::vector<std::string>& labels,
                        size_t k);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_CLASSIFY_H_
