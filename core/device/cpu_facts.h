// What the system says of its CPU.
#ifndef MERGEKERNEL_CORE_DEVICE_CPU_FACTS_H_
#define MERGEKERNEL_CORE_DEVICE_CPU_FACTS_H_

#include <string>

namespace mk {

std::string CpuModelName();  // "unknown CPU" where nothing tells
int AllowedCores();          // that this process may run on; >= 1

}  // namespace mk

#endif  // MERGEKERNEL_CORE_DEVICE_CPU_FACTS_H_
