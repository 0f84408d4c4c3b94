// mk: everything a person types.
#include <cstdlib>
#include <iostream>

#include "server/cli/cmd_scan.h"
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
    "\n"
    "Exit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 no daemon, 4 request refused, 5 try "
    "again, 6 daemon's fault.";

int Main(int argc, char** argv) {
  Globals globals;
  if (const char* address = std::getenv("MK_ADDRESS")) globals.address = address;
  int exit_code = kOk;
  CLI::App app(kAbout);
  app.add_option("--address", globals.address, "Daemon: HOST:PORT or unix:PATH (or MK_ADDRESS)")
      ->capture_default_str();
  app.add_option("--timeout", globals.timeout_seconds, "Seconds per call")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 86400.0));
  app.add_flag("--json", globals.json, "Print JSON for scripts");
  app.require_subcommand(1);
  app.fallthrough();  // the options above may stand behind the subcommand too
  AddStatus(app, globals, &exit_code);
  AddPacks(app, globals, &exit_code);
  AddLoadUnload(app, globals, &exit_code);
  AddInfer(app, globals, &exit_code);
  AddBench(app, globals, &exit_code);
  AddDoctor(app, globals, &exit_code);
  AddScan(app, globals, &exit_code);
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "mk: " << error.what() << "\n";
    const std::string nearest = argc > 1 ? Nearest(argv[1], names) : "";
    if (!nearest.empty() && nearest != argv[1])
      std::cerr << "    Did you mean 'mk " << nearest << "'?\n";
    std::cerr << "    mk --help shows all commands; mk COMMAND --help one of them.\n";
    return kUsage;
  }
  return exit_code;
}

}  // namespace
}  // namespace mk::cli

int main(int argc, char** argv) { return mk::cli::Main(argc, argv); }
