// mk doctor: whether this machine can run the daemon, before one wonders why it does not. Local;
// needs no daemon.
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>

#include "core/base/meminfo.h"
#include "core/device/cpu_facts.h"
#include "core/device/cuda/driver.h"
#include "core/device/sgemm.h"
#include "server/cli/common.h"

namespace mk::cli {
namespace {

using nlohmann::json;

// One line of the report.
struct Finding {
  std::string what;
  std::string state;  // "ok", "warn", "fail"
  std::string detail;
};

Finding Cpu() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string flags;
  for (std::string line; std::getline(cpuinfo, line) && flags.empty();) {
    if (line.rfind("flags", 0) == 0 || line.rfind("Features", 0) == 0) flags = line + " ";
  }
  std::string sets;
  for (const char* set :
       {"avx2", "fma", "f16c", "avx512f", "avx512_bf16", "asimd", "bf16", "i8mm"}) {
    if (flags.find(std::string(" ") + set + " ") != flags.npos)
      sets += (sets.empty() ? "" : " ") + std::string(set);
  }
  return {"CPU", "ok",
          CpuModelName() + ", " + std::to_string(AllowedCores()) + " cores allowed; " +
              (sets.empty() ? "no vector set known here" : sets)};
}

Finding Memory() {
  const uint64_t total = MemInfoBytes("MemTotal"), available = MemInfoBytes("MemAvailable");
  if (total == 0) return {"memory", "fail", "/proc/meminfo cannot be read: mount /proc"};
  return {"memory", available < (uint64_t{512} << 20) ? "warn" : "ok",
          HumanBytes(available) + " available of " + HumanBytes(total)};
}

// One product through the same door that packs use, checked and timed.
Finding Sgemm() {
  constexpr int64_t kSize = 512;
  std::vector<float> a(kSize * kSize), b(a), c(a);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 5) - 2;
    b[i] = static_cast<float>(i % 7) - 3;
  }
  const mk_sgemm_args args = {0,        0,     kSize,    kSize, kSize,    1,    0,
                              a.data(), kSize, b.data(), kSize, c.data(), kSize};
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status status = mk::Sgemm(args);
    if (!status.ok())
      return {"SGEMM", "fail", SgemmKernelName() + ": " + std::string(status.message())};
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  double want = 0;
  for (int64_t k = 0; k < kSize; ++k) {
    want += static_cast<double>(a[static_cast<size_t>(3 * kSize + k)]) *
            b[static_cast<size_t>(k * kSize + 5)];
  }
  if (std::fabs(c[3 * kSize + 5] - want) > 1e-3)
    return {"SGEMM", "fail", SgemmKernelName() + " gives wrong numbers"};
  const double flops = 2.0 * kSize * kSize * kSize / best * 1e-9;
  return {
      "SGEMM", "ok",
      SgemmKernelName() + ", " + Fixed(flops, 0) + " GFLOP/s on one core (measured now, 512^3)"};
}

// What the loader does with a pack: bytes into a memfd, sealed, opened again through /proc and
// mapped to be executed. Any step may be forbidden (vm.memfd_noexec, SELinux, a sandbox without
// /proc).
Finding SealedMemory() {
  const auto fail = [](const char* step) {
    return Finding{"sealed memory", "fail",
                   std::string(step) + ": " + std::strerror(errno) + "; packs cannot be loaded"};
  };
  const int fd = memfd_create("mk-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return fail("memfd_create");
  Finding finding = {"sealed memory", "ok", "packs are run from memory that nobody can change"};
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  int again = -1;
  void* code = MAP_FAILED;
  if (ftruncate(fd, 4096) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    finding = fail("sealing a memfd");
  } else if ((again = open(path.c_str(), O_RDONLY | O_CLOEXEC)) < 0) {
    finding = fail(path.c_str());
  } else if ((code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, again, 0)) ==
             MAP_FAILED) {
    finding = fail("mapping a sealed memfd to be executed");
  }
  if (code != MAP_FAILED) munmap(code, 4096);
  if (again >= 0) close(again);
  close(fd);
  return finding;
}

// The loader reads its own mappings to prove that a pack is gone.
Finding Proc() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  if (!std::getline(maps, line))
    return {"/proc", "fail", "/proc/self/maps cannot be read; an unload could not be proven"};
  return {"/proc", "ok", "own mappings can be read"};
}

Finding Executable() {
  void* page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    return {"generated code", "warn",
            "memory may not be written and executed; oneDNN needs it (systemd: "
            "MemoryDenyWriteExecute=no)"};
  }
  munmap(page, 4096);
  return {"generated code", "ok", "memory may be written and executed"};
}

Finding Mappings() {
  std::ifstream in("/proc/sys/vm/max_map_count");
  uint64_t count = 0;
  in >> count;
  return {"mappings", count >= 65530 ? "ok" : "warn", "vm.max_map_count " + std::to_string(count)};
}

Finding System() {
  utsname name = {};
  uname(&name);
  return {"system", "ok",
          std::string(name.sysname) + " " + name.release + " " + name.machine + ", glibc " +
              gnu_get_libc_version()};
}

// A machine without a GPU is no failure; a driver that is there and cannot be used is worth a look.
Finding Cuda() {
  const DriverReport driver = InspectDriver();
  std::string detail = driver.message;
  for (const std::string& device : driver.devices) detail += "; " + device;
  const bool fine = driver.state == DriverState::kReady || driver.state == DriverState::kAbsent;
  return {"CUDA driver", fine ? "ok" : "warn", detail};
}

Finding Port(uint16_t port, const char* what) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return {"port " + std::to_string(port), free ? "ok" : "warn",
          std::string(what) + (free ? ", free" : ", in use (by a running daemon, perhaps)")};
}

Finding RunningDaemon(const Globals& globals) {
  Globals quick = globals;
  quick.timeout_seconds = 2;
  Client client(quick);
  inference::ServerReadyResponse ready;
  grpc::ClientContext context;
  client.Prepare(context);
  const grpc::Status status = client.stub().ServerReady(&context, {}, &ready);
  if (!status.ok()) return {"daemon", "ok", "none answers at " + globals.address};
  return {"daemon", ready.ready() ? "ok" : "warn",
          std::string(ready.ready() ? "ready" : "not ready") + " at " + globals.address};
}

int Doctor(const Globals& globals) {
  const std::vector<Finding> findings = {System(),
                                         Cpu(),
                                         Memory(),
                                         Sgemm(),
                                         SealedMemory(),
                                         Proc(),
                                         Executable(),
                                         Mappings(),
                                         Cuda(),
                                         Port(8001, "gRPC"),
                                         Port(8002, "metrics"),
                                         RunningDaemon(globals)};
  bool failed = false;
  json out = json::array();
  Table table({"CHECK", "STATE", "DETAIL"});
  for (const Finding& finding : findings) {
    failed = failed || finding.state == "fail";
    out.push_back({{"check", finding.what}, {"state", finding.state}, {"detail", finding.detail}});
    table.Row({finding.what, finding.state, finding.detail});
  }
  std::cout << (globals.json ? JsonText(out) : table.Text());
  return failed ? kNo : kOk;
}

}  // namespace

void AddDoctor(CLI::App& app, Globals& globals, int* exit_code) {
  auto* command = app.add_subcommand("doctor",
                                     "Check this machine: CPU, memory, SGEMM kernel, sealing, "
                                     "ports\nExit code 1 when a check fails.");
  command->callback([&globals, exit_code] { *exit_code = Doctor(globals); });
}

}  // namespace mk::cli
