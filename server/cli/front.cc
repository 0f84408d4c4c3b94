#include "server/cli/front.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/program.h"
#include "core/base/text.h"
#include "server/cli/cmd_tools.h"

namespace mk::cli {
namespace {

constexpr char kFront[] = "verify/front/main.py";
constexpr size_t kMaxAnswer = 1 << 20;
constexpr char kNeeds[] =
    "The front needs a Python 3.9 or later with torch, onnx and onnxscript, and transformers for a "
    "config.\n--python PROGRAM names it, for example VENV/bin/python.";

FrontAnswer Failed(ExitCode code, std::string message, std::string hint = "") {
  FrontAnswer answer;
  answer.code = code;
  answer.message = std::move(message);
  answer.hint = std::move(hint);
  return answer;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string TextOf(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<std::string> TextsOf(const nlohmann::json& object, const char* key) {
  std::vector<std::string> out;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return out;
  for (const auto& one : *found) {
    if (one.is_string()) out.push_back(one.get<std::string>());
  }
  return out;
}

// In the child: becomes `argv` with `out` as its standard output. Calls only what is allowed
// between fork and exec.
[[noreturn]] void Become(std::vector<char*>& argv, int out, int report) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGQUIT, SIG_DFL);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, 0);
  if (dup2(out, 1) == 1) execvp(argv[0], argv.data());
  const int error = errno;
  if (write(report, &error, sizeof error) != sizeof error) _exit(126);
  _exit(127);
}

struct Ended {
  std::string text;
  int start_error = 0;  // errno where the program could not be started
  int status = 0;       // of waitpid
};

Ended Collect(pid_t pid, int out, int report) {
  Ended ended;
  char part[4096];
  for (;;) {
    const ssize_t got = read(out, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (ended.text.size() <= kMaxAnswer) ended.text.append(part, static_cast<size_t>(got));
  }
  if (read(report, &ended.start_error, sizeof ended.start_error) != sizeof ended.start_error) {
    ended.start_error = 0;
  }
  while (waitpid(pid, &ended.status, 0) < 0 && errno == EINTR) {
  }
  return ended;
}

Ended RunProgram(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  Ended ended;
  int out[2], report[2];
  if (pipe2(out, O_CLOEXEC) != 0) return {"", errno, 0};
  if (pipe2(report, O_CLOEXEC) != 0) {
    ended.start_error = errno;
    close(out[0]), close(out[1]);
    return ended;
  }
  // As system() does: the keyboard's interrupt is for the child, whose end is then told.
  const auto interrupt = std::signal(SIGINT, SIG_IGN);
  const auto quit = std::signal(SIGQUIT, SIG_IGN);
  const pid_t pid = fork();
  if (pid == 0) Become(argv, out[1], report[1]);
  const int fork_error = errno;
  close(out[1]), close(report[1]);
  if (pid < 0) {
    ended.start_error = fork_error;
  } else {
    ended = Collect(pid, out[0], report[0]);
  }
  close(out[0]), close(report[0]);
  std::signal(SIGINT, interrupt);
  std::signal(SIGQUIT, quit);
  return ended;
}

std::vector<std::string> Arguments(const std::string& script, const std::string& source,
                                   const std::string& folder, const FrontOptions& options) {
  std::vector<std::string> out = {options.python, "-B",         script,          "--out",
                                  folder,         "--exporter", options.exporter};
  const auto add = [&](const char* flag, std::string value) {
    out.push_back(flag);
    out.push_back(std::move(value));
  };
  if (options.layers > 0) add("--layers", std::to_string(options.layers));
  for (const std::string& shape : options.shapes) add("--shapes", shape);
  add("--seconds", std::to_string(options.seconds));
  if (options.memory_gib > 0) add("--memory", std::to_string(options.memory_gib));
  add("--", source);  // whatever it begins with
  return out;
}

}  // namespace

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

bool TemporaryFolder::Make() {
  const char* const base = std::getenv("TMPDIR");
  std::string path = std::string(base != nullptr && *base ? base : "/tmp") + "/mk-scan-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return false;
  path_ = path;
  return true;
}

bool NeedsFront(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) return true;
  return EndsWith(path, ".pt2") || EndsWith(path, ".json");
}

FrontAnswer ParseFrontAnswer(const std::string& text, const std::string& python) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const bool is_object = json.is_object();
  if (is_object && json.contains("exported") && json["exported"].is_object()) {
    const auto& made = json["exported"];
    FrontAnswer answer;
    answer.onnx = TextOf(made, "onnx");
    answer.origin = {TextOf(made, "kind"), TextOf(made, "exporter"), TextOf(made, "inputs"),
                     TextsOf(made, "notes")};
    if (made.contains("hidden") && made["hidden"].is_array()) {
      for (const auto& one : made["hidden"]) {
        if (one.is_object())
          answer.hidden.push_back({TextOf(one, "code"), "", TextOf(one, "text")});
      }
    }
    if (!answer.onnx.empty() && !answer.origin.kind.empty()) return answer;
  }
  if (is_object && json.contains("refused") && json["refused"].is_object()) {
    const auto& refused = json["refused"];
    const bool understood = json.contains("understood") && json["understood"] == true;
    return Failed(understood ? kNo : kUsage,
                  "not exported, at " + TextOf(refused, "stage") + ": " + TextOf(refused, "kind") +
                      ": " + TextOf(refused, "text"),
                  TextOf(refused, "hint"));
  }
  return Failed(
      kUsage,
      python + " gave no answer" + (text.empty() ? "" : ": " + Printable(text.substr(0, 200))),
      kNeeds);
}

FrontAnswer ExportByFront(const std::string& source, const std::string& folder,
                          const FrontOptions& options) {
  const std::string tree = TreeOfProgram(kFront);
  if (tree.empty()) {
    return Failed(kUsage, std::string(kFront) + " is not above " + OwnProgram(),
                  "It belongs to a checkout of mergekernel: start the mk that stands inside one.");
  }
  const Ended ended = RunProgram(Arguments(tree + "/" + kFront, source, folder, options));
  if (ended.start_error != 0) {
    return Failed(
        kUsage, options.python + " cannot be started: " + std::strerror(ended.start_error), kNeeds);
  }
  if (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 130)
    return Failed(kNo, "interrupted");
  if (WIFSIGNALED(ended.status)) {
    return Failed(
        kNo, options.python + " was ended by signal " + std::to_string(WTERMSIG(ended.status)));
  }
  return ParseFrontAnswer(ended.text, options.python);
}

}  // namespace mk::cli
