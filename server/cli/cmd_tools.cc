// mk verify, mk results: local; need no daemon. Why they are Python: docs/design/evidence.md.
#include "server/cli/cmd_tools.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/base/program.h"

namespace mk::cli {
namespace {

constexpr char kVerify[] = "verify/run/main.py";
constexpr char kResults[] = "results/render.py";
constexpr char kPython[] = "python3";

std::string Here() {
  char path[PATH_MAX];
  return getcwd(path, sizeof path) != nullptr ? path : "/";
}

// The folder that `script` really stands in: a build's output tree links to parts of the checkout.
std::string WithoutLinks(const std::string& folder, const std::string& script) {
  char path[PATH_MAX];
  if (realpath((folder + "/" + script).c_str(), path) == nullptr) return folder;
  const std::string real = path;
  if (real.size() <= script.size() + 1 ||
      real.compare(real.size() - script.size(), script.size(), script) != 0) {
    return folder;
  }
  return real.substr(0, real.size() - script.size() - 1);
}

// Becomes the tool; returns only where that fails.
int Become(const Globals& globals, const std::string& script, std::vector<std::string> arguments) {
  const std::string program = OwnProgram();
  const std::string tree = TreeWith(script, {Here(), program});
  if (tree.empty()) {
    return ReportUsage(globals, script + " is not in this folder or above it, nor above " + program,
                       "It belongs to a checkout of mergekernel: run mk from inside one.");
  }
  if (globals.json) arguments.push_back("--json");
  arguments.insert(arguments.begin(), {kPython, "-B", tree + "/" + script});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  setenv("MK_PROGRAM", program.c_str(), 1);  // for tools that start mk again
  execvp(kPython, argv.data());
  return ReportUsage(globals, std::string(kPython) + " cannot be started: " + std::strerror(errno),
                     "mk verify and mk results need Python 3.9 or later, and nothing else of it.");
}

void AddTool(CLI::App& app, Globals& globals, int* exit_code, const char* name, const char* about,
             const char* script) {
  auto* command = app.add_subcommand(name, about);
  command->set_help_flag("");  // the tool's own answers
  command->prefix_command();   // everything behind the name is the tool's
  command->fallthrough(false);
  command->callback([&globals, command, script, exit_code] {
    *exit_code = Become(globals, script, command->remaining());
  });
}

}  // namespace

std::string TreeOfProgram(const std::string& script) {
  const std::string program = OwnProgram();
  std::string tree = TreeWith(script, {program});
  // Bazel runs programs from an output base of its own, which names the checkout in this file.
  for (std::string folder = program; tree.empty() && !folder.empty();) {
    folder.resize(folder.rfind('/') == folder.npos ? 0 : folder.rfind('/'));
    std::ifstream file(folder + "/DO_NOT_BUILD_HERE");
    std::string checkout;
    if (std::getline(file, checkout) && !checkout.empty() && checkout[0] == '/' &&
        checkout.size() < PATH_MAX) {
      tree = TreeWith(script, {checkout});
      break;
    }
  }
  return tree;
}

std::string TreeWith(const std::string& script, const std::vector<std::string>& starts) {
  for (std::string folder : starts) {
    while (!folder.empty()) {
      struct stat facts = {};
      if (stat((folder + "/" + script).c_str(), &facts) == 0 && S_ISREG(facts.st_mode)) {
        return WithoutLinks(folder, script);
      }
      folder.resize(folder.rfind('/') == folder.npos ? 0 : folder.rfind('/'));
    }
  }
  return "";
}

void AddVerify(CLI::App& app, Globals& globals, int* exit_code) {
  AddTool(app, globals, exit_code, "verify",
          "What does the official path make of a model here, and what do we? (mk verify --help)",
          kVerify);
}

void AddResults(CLI::App& app, Globals& globals, int* exit_code) {
  AddTool(app, globals, exit_code, "results",
          "The platform x model matrix of results/verdict.csv (mk results --help)", kResults);
}

}  // namespace mk::cli
