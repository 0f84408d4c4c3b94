#include "tests/soak/process_size.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace mk {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

double EntriesOf(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  if (error) return 0;
  return static_cast<double>(std::distance(begin(entries), end(entries)));
}

// Each thread lists the children that it started.
double ChildrenOf(const std::string& proc) {
  double children = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator task(proc + "/task", error), none;
       !error && task != none; task.increment(error)) {
    std::istringstream pids(ReadAll(task->path() / "children"));
    for (int pid; pids >> pid;) ++children;
  }
  return children;
}

}  // namespace

absl::StatusOr<ProcessSize> ReadProcessSize(int pid) {
  const std::string proc = absl::StrCat("/proc/", pid);
  double total_pages = 0, resident_pages = 0;
  if (!(std::istringstream(ReadAll(proc + "/statm")) >> total_pages >> resident_pages)) {
    return absl::NotFoundError(absl::StrCat("process ", pid, " is gone"));
  }
  const std::string maps = ReadAll(proc + "/maps");
  ProcessSize size;
  size.resident_bytes = resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  size.descriptors = EntriesOf(proc + "/fd");
  size.threads = EntriesOf(proc + "/task");
  size.mappings = static_cast<double>(std::count(maps.begin(), maps.end(), '\n'));
  size.children = ChildrenOf(proc);
  return size;
}

}  // namespace mk
