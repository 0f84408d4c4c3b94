// What the kernel says of this process' and this machine's memory.
#ifndef MERGEKERNEL_CORE_METRICS_PROCESS_FACTS_H_
#define MERGEKERNEL_CORE_METRICS_PROCESS_FACTS_H_

#include <cstdint>
#include <string_view>

namespace mk {

// 0: not known.
struct ProcessFacts {
  uint64_t resident_bytes = 0;
  uint64_t cpu_memory_total_bytes = 0;
  uint64_t cpu_memory_used_bytes = 0;  // total - available, so without what caches can give back
};

// Reads /proc/self/statm and /proc/meminfo. Any thread; a few microseconds; never fails.
ProcessFacts ReadProcessFacts();

// The parts that read no file. `statm`: the text of /proc/self/statm; `meminfo`: of /proc/meminfo.
uint64_t ResidentBytes(std::string_view statm, uint64_t page_bytes);
void ReadMemInfo(std::string_view meminfo, ProcessFacts& facts);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_METRICS_PROCESS_FACTS_H_
