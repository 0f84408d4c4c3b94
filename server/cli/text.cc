#include "server/cli/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "absl/status/status.h"

namespace mk::cli {
namespace {

std::string Number(double value, const char* unit) {
  std::array<char, 48> text;
  const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  std::snprintf(text.data(), text.size(), "%.*f %s", digits, value, unit);
  return text.data();
}

// Optimal string alignment distance.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string HumanBytes(uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return Number(value, kUnits[unit]);
}

std::string HumanNs(double ns) {
  if (ns < 1000) return Number(ns, "ns");
  if (ns < 1e6) return Number(ns / 1e3, "us");
  if (ns < 1e9) return Number(ns / 1e6, "ms");
  return Number(ns / 1e9, "s");
}

absl::StatusOr<double> ParseSeconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const double scale = unit.empty() || unit == "s" ? 1
                       : unit == "ms"              ? 1e-3
                       : unit == "m"               ? 60
                                                   : 0;
  if (error != std::errc() || scale == 0 || !std::isfinite(value) || value <= 0 ||
      value * scale > 86400) {
    return absl::InvalidArgumentError(
        "duration '" + std::string(text) +
        "' must be a number above 0 with ms, s or m behind it, and at most a day");
  }
  return value * scale;
}

absl::StatusOr<uint64_t> ParseCount(std::string_view what, std::string_view text, uint64_t limit) {
  uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (text.empty() || error != std::errc() || end != last || value > limit) {
    return absl::InvalidArgumentError(std::string(what) + " '" + std::string(text) +
                                      "' must be a whole number from 0 to " +
                                      std::to_string(limit));
  }
  return value;
}

std::string Nearest(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // no typing mistake needs more, and the table is quadratic
  if (word.empty() || word.size() > kLongest) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongest) continue;
    const size_t distance = Distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not a continuation byte
  }));
}

}  // namespace mk::cli
