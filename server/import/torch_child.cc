#include "server/import/torch_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/import/torch_to_safetensors.h"

namespace mk {
namespace {

constexpr int kCheckpointFd = 3;  // the converter's
constexpr size_t kMaxWords = 8 << 10;
constexpr int kExitRefused = 3;
constexpr int kExitMemory = 4;
// 10 MB/s is a tenth of the slowest converter seen; beyond it, work was made to take long.
constexpr uint64_t kSlowestBytesPerSecond = 10'000'000;

// What the child tells of its start, over a pipe that the exec closes.
struct StartReport {
  enum Kind : int { kNoNetworkNamespace, kNoLimit, kNoExec } kind;
  int error;
};

struct Pipe {
  Fd read, write;
  static absl::StatusOr<Pipe> Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat("converter: pipe: ", std::strerror(errno)));
    }
    return Pipe{Fd(ends[0]), Fd(ends[1])};
  }
};

// The program of that name: as it is when it has a '/', else in PATH.
std::string FindProgram(const std::string& name) {
  if (name.find('/') != name.npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  for (const auto folder : absl::StrSplit(path != nullptr ? path : "/usr/bin:/bin", ':')) {
    const std::string candidate = absl::StrCat(folder, "/", name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

struct ChildSetup {
  const char* program;
  char* const* argv;
  char* const* environment;
  int checkpoint, data, words, report;
  rlim_t memory_bytes, cpu_seconds;
};

// Between fork and exec: only calls that are safe there.
[[noreturn]] void RunChild(const ChildSetup& setup) {
  const auto say = [&](StartReport::Kind kind) {
    const StartReport report = {kind, errno};
    if (write(setup.report, &report, sizeof report) != sizeof report) _exit(126);
  };
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN);  // a Ctrl-C at the terminal is the parent's to answer
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // A user namespace of its own makes the network namespace possible for everyone; root has no need
  // of one, and where neither is allowed the parent says so.
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 && unshare(CLONE_NEWNET) != 0) {
    say(StartReport::kNoNetworkNamespace);
  }
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  // Above the numbers they go to, so that no move overwrites the source of a later one.
  const int checkpoint = fcntl(setup.checkpoint, F_DUPFD_CLOEXEC, 16);
  const int data = fcntl(setup.data, F_DUPFD_CLOEXEC, 16);
  const int words = fcntl(setup.words, F_DUPFD_CLOEXEC, 16);
  if (dup2(null, 0) < 0 || dup2(data, 1) < 0 || dup2(words, 2) < 0 ||
      dup2(checkpoint, kCheckpointFd) < 0) {
    say(StartReport::kNoExec);
    _exit(126);
  }
  struct {
    int what;
    rlim_t limit;
  } const limits[] = {{RLIMIT_AS, setup.memory_bytes},
                      {RLIMIT_CPU, setup.cpu_seconds},
                      {RLIMIT_CORE, 0},
                      {RLIMIT_FSIZE, 0},  // it writes to pipes alone
                      {RLIMIT_NOFILE, 16},
                      {RLIMIT_NPROC, 0}};
  for (const auto& one : limits) {
    const rlimit limit = {one.limit, one.limit};
    if (setrlimit(static_cast<__rlimit_resource>(one.what), &limit) != 0) {
      say(StartReport::kNoLimit);
      _exit(126);
    }
  }
  execve(setup.program, setup.argv, setup.environment);
  say(StartReport::kNoExec);
  _exit(126);
}

class TorchStream : public CheckpointStream {
 public:
  TorchStream(pid_t pid, Fd data, Fd words, const TorchOptions& options)
      : pid_(pid), data_(std::move(data)), words_(std::move(words)), options_(options) {
    fcntl(data_.get(), F_SETPIPE_SZ, 1 << 20);  // fewer wake-ups; any size does
  }
  ~TorchStream() override {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    Reap();
  }

  // `network`: whether the converter has a network namespace of its own.
  absl::Status ReadHeader(bool network) {
    uint64_t size = 0;
    char bytes[8];
    MK_RETURN_IF_ERROR(Read(bytes, sizeof bytes));
    for (int i = 7; i >= 0; --i) size = size << 8 | static_cast<uint8_t>(bytes[i]);
    auto header =
        ReadStreamedHeader([this](char* out, uint64_t count) { return Read(out, count); }, size);
    if (!header.ok()) return header.status();
    header_ = *std::move(header);
    const auto notes = header_.metadata.find("notes");
    if (notes != header_.metadata.end() && !notes->second.empty()) {
      for (const auto line : absl::StrSplit(notes->second, '\n')) {
        notes_.push_back(Printable(std::string_view(line.data(), line.size()), 1000));
      }
    }
    if (!network) {
      notes_.push_back(
          "this system allows no network namespace here: the converter could reach "
          "the network, if it did anything but read");
    }
    return absl::OkStatus();
  }

  absl::Status Read(char* out, uint64_t size) override {
    while (size > 0) {
      MK_RETURN_IF_ERROR(WaitForData());
      const ssize_t got = read(data_.get(), out, size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return absl::InternalError(absl::StrCat("converter: ", std::strerror(errno)));
      if (got == 0) return Ended();
      out += got;
      size -= static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    char more;
    MK_RETURN_IF_ERROR(WaitForData());
    if (read(data_.get(), &more, 1) > 0) return absl::InternalError("converter: too many bytes");
    return Ended();
  }

 private:
  absl::Status WaitForData() {
    pollfd ready = {data_.get(), POLLIN, 0};
    const int got = poll(&ready, 1, static_cast<int>(options_.silence_seconds * 1000));
    if (got > 0 || (got < 0 && errno == EINTR)) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat("the converter sent nothing for ",
                                                     options_.silence_seconds, " s and was ended"));
  }

  int Reap() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  // OK when the converter ended well; its words otherwise.
  absl::Status Ended() {
    std::string words(kMaxWords, '\0');
    size_t size = 0;
    while (size < words.size()) {
      const ssize_t got = read(words_.get(), words.data() + size, words.size() - size);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      size += static_cast<size_t>(got);
    }
    words = Printable(std::string_view(words.data(), size), 4000);
    const int status = pid_ != 0 ? Reap() : 0;
    if (WIFEXITED(status)) {
      switch (WEXITSTATUS(status)) {
        case 0:
          return absl::OkStatus();
        case kExitRefused:
          return absl::InvalidArgumentError(words);
        case kExitMemory:
          return absl::ResourceExhaustedError(
              absl::StrCat(words, ", ", options_.memory_bytes, " bytes"));
        default:
          return absl::InternalError(
              absl::StrCat("the converter ended with code ", WEXITSTATUS(status), ": ", words));
      }
    }
    const int signal = WTERMSIG(status);
    if (signal == SIGXCPU || signal == SIGKILL) {
      return absl::ResourceExhaustedError("the converter met its limit of processor time");
    }
    return absl::InternalError(
        absl::StrCat("the converter ended by a signal: ", strsignal(signal), "; ", words));
  }

  pid_t pid_;
  const Fd data_, words_;
  const TorchOptions options_;
};

struct Started {
  pid_t pid = 0;
  bool network_namespace = true;
};

absl::StatusOr<Started> Start(const ChildSetup& setup, Pipe report) {
  const pid_t pid = fork();
  if (pid < 0) {
    return absl::ResourceExhaustedError(absl::StrCat("converter: fork: ", std::strerror(errno)));
  }
  if (pid == 0) RunChild(setup);
  report.write = Fd();
  Started started;
  started.pid = pid;
  StartReport said;
  for (;;) {
    const ssize_t got = read(report.read.get(), &said, sizeof said);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof said) return started;
    if (said.kind == StartReport::kNoNetworkNamespace) {
      started.network_namespace = false;
      continue;
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return absl::InternalError(absl::StrCat(said.kind == StartReport::kNoLimit
                                                ? "the converter's limits cannot be set: "
                                                : "the converter cannot be started: ",
                                            std::strerror(said.error)));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointStream>> OpenTorchCheckpoint(Fd fd, uint64_t file_size,
                                                                      const TorchOptions& options) {
  std::string program = FindProgram(options.python);
  if (program.empty()) {
    return absl::UnimplementedError(absl::StrCat(
        "PyTorch's files are read by a Python of 3.8 or newer, and '", Printable(options.python),
        "' is not there; install python3, name one with "
        "--python, or convert the file to safetensors elsewhere"));
  }
  // -I -S: no user site, no environment, no packages. -B: writes no byte code.
  std::string arguments[] = {program,           "-I", "-S", "-B", "-c", kTorchToSafetensors,
                             options.state_dict};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  char locale[] = "LC_ALL=C.UTF-8";
  char* environment[] = {locale, nullptr};
  MK_ASSIGN_OR_RETURN(Pipe data, Pipe::Open());
  MK_ASSIGN_OR_RETURN(Pipe words, Pipe::Open());
  MK_ASSIGN_OR_RETURN(Pipe report, Pipe::Open());
  const ChildSetup setup = {
      program.c_str(),    argv.data(),          environment,
      fd.get(),           data.write.get(),     words.write.get(),
      report.write.get(), options.memory_bytes, 30 + file_size / kSlowestBytesPerSecond};
  MK_ASSIGN_OR_RETURN(const Started started, Start(setup, std::move(report)));
  data.write = Fd();
  words.write = Fd();
  auto stream = std::make_unique<TorchStream>(started.pid, std::move(data.read),
                                              std::move(words.read), options);
  MK_RETURN_IF_ERROR(stream->ReadHeader(started.network_namespace));
  return std::unique_ptr<CheckpointStream>(std::move(stream));
}

}  // namespace mk
