// What the system says of its CPU and memory.
#ifndef MERGEKERNEL_CORE_DEVICE_CPU_FACTS_H_
#define MERGEKERNEL_CORE_DEVICE_CPU_FACTS_H_

#include <cstdint>
#include <string>

namespace mk {

std::string CpuModelName();  // "unknown CPU" where nothing tells
int AllowedCores();          // that this process may run on; >= 1

// A line of /proc/meminfo ("MemTotal", "MemAvailable") in bytes; 0 when it is not there.
uint64_t MemInfoBytes(const std::string& key);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_CPU_FACTS_H_
