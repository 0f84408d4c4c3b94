// mk: everything a person types.
#include <sys/un.h>

#include <cstdlib>

#include "core/base/version.h"
#include "server/cli/cmd_explain.h"
#include "server/cli/cmd_scan.h"
#include "server/cli/cmd_tools.h"
#include "server/cli/common.h"

namespace mk::cli {
namespace {

constexpr char kAbout[] =
    "mk: talk to a mergekernel daemon.\n"
    "\n"
    "Begin with\n"
    "  mk doctor                          can this machine run the daemon?\n"
    "  mk status                          is one running?\n"
    "  mk packs                           what does it serve?\n"
    "  mk infer vmamba-pico shirt.png     classify a picture\n"
    "  mk import vmamba tiny.pth --repository DIR   make a pack of a checkpoint\n"
    "  mk scan model.onnx                 does a model hit the blind spots?\n"
    "  mk verify vmamba-pico              what does the official path make of it here?\n"
    "  mk results                         what was measured and reported so far?\n"
    "  mk explain DIR/vmamba-pico         what would a pack launch on a board, and how long?\n"
    "\n"
    "Exit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 no daemon, 4 request refused, 5 try "
    "again, 6 daemon's fault.";

// What is wrong with an address, or "". A Unix socket's path has a limit that gRPC would report as
// an unreachable daemon.
std::string AddressProblem(const std::string& address) {
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (address.empty()) return "must read HOST:PORT or unix:PATH";
  if (address.rfind("unix:", 0) != 0 || address.size() - 5 <= kLongest) return "";
  return "the socket's path has " + std::to_string(address.size() - 5) + " bytes; at most " +
         std::to_string(kLongest) + " are possible";
}

int Main(int argc, char** argv) {
  Globals globals;
  if (const char* address = std::getenv("MK_ADDRESS")) {
    globals.address = address;
    const std::string problem = AddressProblem(globals.address);
    if (!problem.empty()) return ReportUsage(globals, "MK_ADDRESS: " + problem);
  }
  int exit_code = kOk;
  CLI::App app(kAbout);
  app.add_option("--address", globals.address, "Daemon: HOST:PORT or unix:PATH (or MK_ADDRESS)")
      ->capture_default_str()
      ->check(AddressProblem);
  app.add_option("--timeout", globals.timeout_seconds, "Seconds per call")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 86400.0));
  app.add_flag("--json", globals.json, "Print JSON for scripts");
  app.set_version_flag("--version", std::string("mk ") + kVersion);
  app.require_subcommand(1);
  app.fallthrough();  // the options above may stand behind the subcommand too
  AddStatus(app, globals, &exit_code);
  AddPacks(app, globals, &exit_code);
  AddLoadUnload(app, globals, &exit_code);
  AddInfer(app, globals, &exit_code);
  AddBench(app, globals, &exit_code);
  AddDoctor(app, globals, &exit_code);
  AddImport(app, globals, &exit_code);
  AddScan(app, globals, &exit_code);
  AddVerify(app, globals, &exit_code);
  AddResults(app, globals, &exit_code);
  AddExplain(app, globals, &exit_code);
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    // The flag may stand behind what could not be parsed.
    for (int i = 1; i < argc; ++i) globals.json = globals.json || std::string(argv[i]) == "--json";
    const std::string meant = argc > 1 ? Meant(argv[1], names) : "";
    return ReportUsage(
        globals, error.what(),
        (meant.empty() || meant == argv[1] ? "" : "Did you mean 'mk " + meant + "'?\n") +
            std::string("mk --help shows all commands; mk COMMAND --help one of them."));
  }
  return exit_code;
}

}  // namespace
}  // namespace mk::cli

int main(int argc, char** argv) { return mk::cli::Main(argc, argv); }
