// Text that came from outside, made fit for an error message or a log line.
#ifndef MERGEKERNEL_CORE_BASE_TEXT_H_
#define MERGEKERNEL_CORE_BASE_TEXT_H_

#include <string>
#include <string_view>

namespace mk {

// `text` with control characters and invalid bytes as \xNN, cut to `limit` bytes with "..." when
// longer.
std::string Printable(std::string_view text, size_t limit = 200);

// Whether `name` may name a pack or a tensor: [A-Za-z0-9_.-], 1 to 128 characters, and neither "."
// nor "..". The same rule keeps names from walking out of the repository.
bool IsPlainName(std::string_view name);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_TEXT_H_
