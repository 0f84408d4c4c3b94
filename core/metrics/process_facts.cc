#include "core/metrics/process_facts.h"

#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "core/base/checked.h"
#include "core/base/meminfo.h"

namespace mk {
namespace {

std::string ReadAll(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The number at the start of `text`, behind blanks.
std::optional<uint64_t> LeadingNumber(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  uint64_t value = 0;
  const auto result = std::from_chars(text.data() + start, text.data() + text.size(), value);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

uint64_t ResidentBytes(std::string_view statm, uint64_t page_bytes) {
  // "size resident shared ...", in pages.
  const size_t blank = statm.find(' ');
  if (blank == std::string_view::npos) return 0;
  const auto pages = LeadingNumber(statm.substr(blank));
  return pages ? CheckedMul(*pages, page_bytes).value_or(0) : 0;
}

void ReadMemInfo(std::string_view meminfo, ProcessFacts& facts) {
  const auto total = MemInfoBytes(meminfo, "MemTotal");
  const auto available = MemInfoBytes(meminfo, "MemAvailable");
  facts.cpu_memory_total_bytes = total.value_or(0);
  facts.cpu_memory_used_bytes =
      total && available && *available <= *total ? *total - *available : 0;
}

ProcessFacts ReadProcessFacts() {
  ProcessFacts facts;
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (page_bytes > 0) {
    facts.resident_bytes =
        ResidentBytes(ReadAll("/proc/self/statm"), static_cast<uint64_t>(page_bytes));
  }
  ReadMemInfo(ReadAll("/proc/meminfo"), facts);
  return facts;
}

}  // namespace mk
