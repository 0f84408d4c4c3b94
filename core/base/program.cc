#include "core/base/program.h"

#include <unistd.h>

#include <climits>

namespace mk {

std::string OwnProgram() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : "";
}

std::string BesideOwnProgram(const std::string& name) {
  const std::string self = OwnProgram();
  return self.substr(0, self.rfind('/') + 1) + name;
}

}  // namespace mk
