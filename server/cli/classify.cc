#include "server/cli/classify.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mk::cli {

std::vector<Ranked> TopK(const std::vector<float>& logits, size_t k,
                         const std::vector<std::string>& labels) {
  double highest = -INFINITY;
  for (const float logit : logits) {
    if (!std::isnan(logit)) highest = std::max(highest, static_cast<double>(logit));
  }
  const auto weight = [&](float logit) {
    return std::isnan(logit) ? 0.0 : std::exp(static_cast<double>(logit) - highest);
  };
  double sum = 0;
  for (const float logit : logits) sum += weight(logit);
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return weight(logits[a]) > weight(logits[b]); });
  std::vector<Ranked> ranked;
  for (size_t i = 0; i < std::min(k, order.size()); ++i) {
    const size_t index = order[i];
    ranked.push_back({index, sum > 0 ? weight(logits[index]) / sum : 0,
                      index < labels.size() ? labels[index] : "class " + std::to_string(index)});
  }
  return ranked;
}

}  // namespace mk::cli
