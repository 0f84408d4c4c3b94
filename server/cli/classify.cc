#include "server/cli/classify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mk::cli {

std::vector<std::string> SplitLabels(std::string_view text) {
  std::vector<std::string> labels;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    labels.emplace_back(line);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return labels;
}

std::vector<Guess> TopK(const std::vector<double>& logits, const std::vector<std::string>& labels,
                        size_t k) {
  // NaN compares false with everything, which would break the sort's order.
  const auto key = [&](size_t i) {
    return std::isnan(logits[i]) ? -std::numeric_limits<double>::infinity() : logits[i];
  };
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return key(a) > key(b); });
  if (order.empty()) return {};
  const double largest = key(order.front());
  // exp(x - max) cannot overflow; an infinite maximum takes all of the probability.
  const auto weight = [&](size_t i) {
    return std::isinf(largest) ? (logits[i] == largest ? 1.0 : 0.0) : std::exp(key(i) - largest);
  };
  double sum = 0;
  for (const size_t i : order) sum += weight(i);
  std::vector<Guess> guesses;
  for (const size_t i : order) {
    if (guesses.size() == k) break;
    guesses.push_back({i, i < labels.size() ? labels[i] : "class " + std::to_string(i), logits[i],
                       sum > 0 ? weight(i) / sum : 0});
  }
  return guesses;
}

}  // namespace mk::cli
