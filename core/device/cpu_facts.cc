#include "core/device/cpu_facts.h"

#include <sched.h>

#include <algorithm>
#include <fstream>

namespace mk {

std::string CpuModelName() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) == 0) {
      const size_t colon = line.find(": ");
      if (colon != line.npos) return line.substr(colon + 2);
    }
  }
  // Arm boards say it in the device tree.
  std::ifstream model("/proc/device-tree/model");
  std::string name;
  if (std::getline(model, name, '\0') && !name.empty()) return name;
  return "unknown CPU";
}

int AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace mk
