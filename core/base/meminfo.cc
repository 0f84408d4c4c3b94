#include "core/base/meminfo.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "core/base/checked.h"

namespace mk {

std::optional<uint64_t> MemInfoBytes(std::string_view meminfo, std::string_view key) {
  for (size_t begin = 0; begin < meminfo.size();) {
    const size_t end = std::min(meminfo.find('\n', begin), meminfo.size());
    const std::string_view line = meminfo.substr(begin, end - begin);
    begin = end + 1;
    if (line.substr(0, key.size()) != key || line.substr(key.size(), 1) != ":") continue;
    const size_t number = line.find_first_not_of(" \t", key.size() + 1);
    if (number == std::string_view::npos) return std::nullopt;
    uint64_t kilobytes = 0;
    const auto parsed = std::from_chars(line.data() + number, line.data() + line.size(), kilobytes);
    return parsed.ec == std::errc() ? CheckedMul(kilobytes, 1024) : std::nullopt;
  }
  return std::nullopt;
}

uint64_t MemInfoBytes(std::string_view key) {
  std::ifstream file("/proc/meminfo");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return MemInfoBytes(text, key).value_or(0);
}

}  // namespace mk
