// The daemon's side of the probe.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/loader/plan_pack.h"
#include "core/loader/probe.h"

namespace mk {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// Where the child finds its descriptors: standard streams, then the result, then the pack's files.
constexpr int kResultFd = 3;
constexpr int kFirstFileFd = 10;
constexpr size_t kMaxOutput = 64 << 10;
constexpr size_t kMaxResult = 16 << 20;  // a plan of 100,000 launches

struct Pipe {
  Fd read, write;
  static absl::StatusOr<Pipe> Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat("probe: pipe: ", std::strerror(errno)));
    }
    return Pipe{Fd(ends[0]), Fd(ends[1])};
  }
};

// posix_spawn's list of descriptor moves, and the arguments that name them.
class Launch {
 public:
  // `files`: how many will be added.
  Launch(const std::string& path, size_t files) : above_(kFirstFileFd + static_cast<int>(files)) {
    posix_spawn_file_actions_init(&actions_);
    arguments_.push_back(path);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
  }
  ~Launch() { posix_spawn_file_actions_destroy(&actions_); }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  // `fd` of this process becomes `to` in the child.
  absl::Status Move(int fd, int to) {
    // From a copy above every `to`, so that no move overwrites the source of a later one.
    copies_.push_back(Fd(fcntl(fd, F_DUPFD_CLOEXEC, above_)));
    if (!copies_.back().ok()) return NoDescriptors(errno);
    const int error = posix_spawn_file_actions_adddup2(&actions_, copies_.back().get(), to);
    return error == 0 ? absl::OkStatus() : NoDescriptors(error);
  }
  absl::Status AddFile(const char* flag, const std::string& name, int fd) {
    arguments_.push_back(absl::StrCat(flag, name, ":", next_));
    return Move(fd, next_++);
  }
  void AddArgument(std::string argument) { arguments_.push_back(std::move(argument)); }

  absl::StatusOr<pid_t> Start(std::vector<std::string> variables) {
    std::vector<char*> argv;
    for (std::string& argument : arguments_) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    pid_t pid = 0;
    const int error = posix_spawn(&pid, arguments_[0].c_str(), &actions_, nullptr, argv.data(),
                                  environment.data());
    if (error != 0) {
      return absl::InternalError(absl::StrCat("probe cannot be started: ", std::strerror(error)));
    }
    return pid;
  }

 private:
  static absl::Status NoDescriptors(int error) {
    return absl::ResourceExhaustedError(absl::StrCat("probe: descriptors: ", std::strerror(error)));
  }

  const int above_;
  posix_spawn_file_actions_t actions_;
  std::vector<std::string> arguments_;
  std::vector<Fd> copies_;
  int next_ = kFirstFileFd;
};

struct Outcome {
  bool timed_out = false;
  int wait_status = 0;
  std::string result;
  std::string output;  // the end of what it wrote to stdout and stderr
};

int MillisLeft(SteadyTime end) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
}

// Reads both pipes until they close or time is up.
void Collect(int result_fd, int output_fd, SteadyTime end, Outcome& outcome) {
  pollfd fds[2] = {{result_fd, POLLIN, 0}, {output_fd, POLLIN, 0}};
  std::string* texts[2] = {&outcome.result, &outcome.output};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const int ready = poll(fds, 2, MillisLeft(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      outcome.timed_out = true;
      return;
    }
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char chunk[4096];
      const ssize_t got = read(fds[i].fd, chunk, sizeof chunk);
      if (got <= 0) {
        fds[i].fd = -1;
        continue;
      }
      texts[i]->append(chunk, static_cast<size_t>(got));
      // Of its words the last ones; of a result that long nothing can be used.
      const size_t limit = i == 0 ? kMaxResult : kMaxOutput;
      if (texts[i]->size() > limit) texts[i]->erase(0, texts[i]->size() - limit);
    }
  }
}

void Reap(pid_t pid, SteadyTime end, Outcome& outcome) {
  // A child that closed its pipes and lives on is a hang too. The wait is short: it has said all it
  // will.
  while (!outcome.timed_out) {
    const pid_t done = waitpid(pid, &outcome.wait_status, WNOHANG);
    if (done == pid || (done < 0 && errno != EINTR)) return;
    if (MillisLeft(end) == 0) outcome.timed_out = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  kill(pid, SIGKILL);
  while (waitpid(pid, &outcome.wait_status, 0) < 0 && errno == EINTR) {
  }
}

// What stands behind the code of a child that went well.
absl::StatusOr<std::string> Verdict(const Outcome& outcome, double timeout_seconds) {
  const std::string tail = outcome.output.size() > 600
                               ? outcome.output.substr(outcome.output.size() - 600)
                               : outcome.output;
  const std::string words = tail.empty() ? "" : absl::StrCat("; it wrote: ", Printable(tail, 1000));
  if (outcome.timed_out) {
    return absl::InvalidArgumentError(
        absl::StrCat("probe: the pack hung: no result within ", timeout_seconds, " s", words));
  }
  if (WIFSIGNALED(outcome.wait_status)) {
    return absl::InvalidArgumentError(
        absl::StrCat("probe: the pack crashed: ", strsignal(WTERMSIG(outcome.wait_status)), words));
  }
  const size_t line = outcome.result.find('\n');
  int code = 0;
  if (line == outcome.result.npos || !absl::SimpleAtoi(outcome.result.substr(0, line), &code)) {
    return absl::InvalidArgumentError(absl::StrCat("probe: the pack ended its process with code ",
                                                   WEXITSTATUS(outcome.wait_status), words));
  }
  if (code == 0) return outcome.result.substr(line + 1);
  return absl::Status(static_cast<absl::StatusCode>(code),
                      absl::StrCat("probe: ", Printable(outcome.result.substr(line + 1), 2000)));
}

absl::StatusOr<std::string> RunChild(const SealedPack& pack, const ProbeOptions& options,
                                     const std::vector<std::string>& arguments) {
  MK_ASSIGN_OR_RETURN(Pipe result, Pipe::Open());
  MK_ASSIGN_OR_RETURN(Pipe output, Pipe::Open());
  Outcome outcome;
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::milliseconds(static_cast<int64_t>(options.timeout_seconds * 1000));
  pid_t pid = 0;
  {
    Launch launch(options.path, 1 + pack.small.size() + pack.weights.size());
    MK_RETURN_IF_ERROR(launch.Move(output.write.get(), 1));
    MK_RETURN_IF_ERROR(launch.Move(output.write.get(), 2));
    MK_RETURN_IF_ERROR(launch.Move(result.write.get(), kResultFd));
    launch.AddArgument(absl::StrCat("--threads=", options.threads));
    launch.AddArgument(absl::StrCat("--device=", options.device));
    for (const std::string& argument : arguments) launch.AddArgument(argument);
    MK_RETURN_IF_ERROR(launch.AddFile("--manifest=", "manifest", pack.manifest_file->fd()));
    for (const auto& [name, file] : pack.small) {
      MK_RETURN_IF_ERROR(launch.AddFile("--small=", name, file->fd()));
    }
    for (const auto& [name, fd] : pack.weights) {
      MK_RETURN_IF_ERROR(launch.AddFile("--weights=", name, fd.get()));
    }
    MK_ASSIGN_OR_RETURN(pid, launch.Start(options.environment));
  }
  result.write = Fd();
  output.write = Fd();
  Collect(result.read.get(), output.read.get(), end, outcome);
  Reap(pid, end, outcome);
  return Verdict(outcome, options.timeout_seconds);
}

}  // namespace

absl::Status RunProbe(const SealedPack& pack, const ProbeOptions& options) {
  return RunChild(pack, options, {}).status();
}

absl::StatusOr<mergekernel::v1::Plan> RunPlan(const SealedPack& pack, const ProbeOptions& probe,
                                              const PlanOptions& options) {
  std::vector<std::string> arguments = {absl::StrCat("--plan=", options.board)};
  for (const PlannedInput& input : options.inputs) {
    arguments.push_back(absl::StrCat("--input=", input.name, "=", absl::StrJoin(input.shape, "x")));
  }
  if (!options.measure_on.empty()) {
    arguments.push_back(absl::StrCat("--measure=", options.measure_on));
    arguments.push_back(absl::StrCat("--runs=", options.runs));
  }
  MK_ASSIGN_OR_RETURN(const std::string bytes, RunChild(pack, probe, arguments));
  mergekernel::v1::Plan plan;
  if (!plan.ParseFromString(bytes)) return absl::InternalError("probe: its plan cannot be read");
  return plan;
}

}  // namespace mk
