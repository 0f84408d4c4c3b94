#include "core/base/text.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace mk {
namespace {

// Levenshtein, with one row of the table.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

// Bytes of the first character of `text` and what it is; 0 where that is no UTF-8 (too short, too
// long a form, a surrogate, past U+10FFFF). REQUIRES text is not empty.
size_t Utf8Size(std::string_view text, uint32_t* point) {
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t size = lead < 0x80       ? 1
                      : lead >> 5 == 6  ? 2
                      : lead >> 4 == 14 ? 3
                      : lead >> 3 == 30 ? 4
                                        : 0;
  if (size == 0 || size > text.size()) return 0;
  *point = size == 1 ? lead : lead & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >> 6 != 2) return 0;
    *point = *point << 6 | (byte & 0x3f);
  }
  const bool surrogate = *point >= 0xd800 && *point < 0xe000;
  return *point < kLeast[size] || *point > 0x10ffff || surrogate ? 0 : size;
}

// `text` with \xNN for each byte that `keep` does not take: it says how many of the next bytes
// stay.
template <typename Keep>
std::string Escaped(std::string_view text, size_t limit, Keep keep) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    if (out.size() >= limit) return out + "...";
    const size_t kept = keep(text);
    if (kept == 0) {
      const auto byte = static_cast<unsigned char>(text[0]);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += text.substr(0, kept);
    }
    text.remove_prefix(kept == 0 ? 1 : kept);
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text, size_t limit) {
  return Escaped(text, limit, [](std::string_view rest) {
    return static_cast<size_t>(rest[0] >= 0x20 && rest[0] < 0x7f);
  });
}

std::string TerminalText(std::string_view text, size_t limit) {
  return Escaped(text, limit, [](std::string_view rest) {
    uint32_t point = 0;
    const size_t size = Utf8Size(rest, &point);
    const bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    const bool direction = point == 0x200e || point == 0x200f ||
                           (point >= 0x202a && point <= 0x202e) ||
                           (point >= 0x2066 && point <= 0x2069);
    return control || direction ? 0 : size;
  });
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    uint32_t point = 0;
    const size_t size = Utf8Size(text, &point);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

bool IsPlainName(std::string_view name) {
  if (name.empty() || name.size() > 128 || name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

std::string Nearest(std::string_view word, const std::vector<std::string>& words, size_t limit) {
  const std::string* best = nullptr;
  size_t best_distance = 0;
  const size_t looked_at = std::min<size_t>(words.size(), 2000);
  for (size_t i = 0; i < looked_at; ++i) {
    const size_t distance = EditDistance(word, words[i]);
    if (distance > limit || (best != nullptr && distance >= best_distance)) continue;
    best = &words[i];
    best_distance = distance;
  }
  return best == nullptr ? "" : *best;
}

}  // namespace mk
