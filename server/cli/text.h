// Text for people: quantities, and the nearest of several words.
#ifndef MERGEKERNEL_SERVER_CLI_TEXT_H_
#define MERGEKERNEL_SERVER_CLI_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mk::cli {

std::string HumanBytes(uint64_t bytes);  // "0 B", "1.5 MiB"
std::string HumanNs(double ns);          // "850 ns", "94.2 us", "1.25 ms", "3.10 s"

// "3s", "500ms", "2m", or a plain number of seconds, to seconds > 0. INVALID_ARGUMENT otherwise.
absl::StatusOr<double> ParseSeconds(std::string_view text);

// Decimal digits only, at most `limit`. INVALID_ARGUMENT naming `what` otherwise.
absl::StatusOr<uint64_t> ParseCount(std::string_view what, std::string_view text, uint64_t limit);

// The one of `known` closest to `word` by insertions, deletions, substitutions and swaps of
// neighbours, or "" when none is close enough to be a typing mistake. The first wins a tie.
std::string Nearest(std::string_view word, const std::vector<std::string>& known);

// Columns that `text` takes in a terminal: UTF-8 code points (wide characters are not told apart).
size_t DisplayWidth(std::string_view text);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_TEXT_H_
