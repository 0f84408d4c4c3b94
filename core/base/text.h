// Text that came from outside, made fit for an error message or a log line.
#ifndef MERGEKERNEL_CORE_BASE_TEXT_H_
#define MERGEKERNEL_CORE_BASE_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace mk {

// `text` with all but printable ASCII as \xNN, cut to `limit` bytes with "..." when longer.
std::string Printable(std::string_view text, size_t limit = 200);

// The same for a terminal: what is UTF-8 stays, but for control characters (C0, DEL, C1) and those
// that turn the direction of writing.
std::string TerminalText(std::string_view text, size_t limit = 200);

// Whether `text` is UTF-8 from end to end: no form too long, no surrogate, nothing past U+10FFFF.
bool IsUtf8(std::string_view text);

// Whether `name` may name a pack or a tensor: [A-Za-z0-9_.-], 1 to 128 characters, and neither "."
// nor "..". The same rule keeps names from walking out of the repository.
bool IsPlainName(std::string_view name);

// Of `words` the one that takes the fewest insertions, deletions and substitutions of bytes to
// become `word`, for "did you mean"; the first of several. "" where none takes `limit` or fewer,
// and of long lists only the first 2000 are looked at. O(|word| * |words|) time.
std::string Nearest(std::string_view word, const std::vector<std::string>& words,
                    size_t limit = static_cast<size_t>(-1));

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_TEXT_H_
