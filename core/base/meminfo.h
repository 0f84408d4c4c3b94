// /proc/meminfo: what memory the system has.
#ifndef MERGEKERNEL_CORE_BASE_MEMINFO_H_
#define MERGEKERNEL_CORE_BASE_MEMINFO_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace mk {

// The line "<key>:   123 kB" of `meminfo`, the file's text, in bytes. Nothing where there is no
// such line, no number in it, or one that overflows.
std::optional<uint64_t> MemInfoBytes(std::string_view meminfo, std::string_view key);

// The same of the file as it is now; 0 where that fails. Any thread; a few microseconds.
uint64_t MemInfoBytes(std::string_view key);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_MEMINFO_H_
