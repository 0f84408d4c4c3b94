// mk verify, mk results: tools of the tree in Python, started in place of `mk`.
#ifndef MERGEKERNEL_SERVER_CLI_CMD_TOOLS_H_
#define MERGEKERNEL_SERVER_CLI_CMD_TOOLS_H_

#include <string>
#include <vector>

#include "server/cli/common.h"

namespace mk::cli {

void AddVerify(CLI::App& app, Globals& globals, int* exit_code);
void AddResults(CLI::App& app, Globals& globals, int* exit_code);

// The first of `starts` and the folders above each that holds `script` as a plain file, with
// symbolic links followed where the script keeps its place in the tree; "" where none does. Reads
// the file system only.
std::string TreeWith(const std::string& script, const std::vector<std::string>& starts);

// The checkout that the running program belongs to, with `script` in it: above the program's own
// file, or the one that Bazel's output base names. Never asks the current folder. "" where there is
// none.
std::string TreeOfProgram(const std::string& script);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_CMD_TOOLS_H_
