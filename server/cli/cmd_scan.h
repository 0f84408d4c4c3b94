// mk scan: needs no daemon.
#ifndef MERGEKERNEL_SERVER_CLI_CMD_SCAN_H_
#define MERGEKERNEL_SERVER_CLI_CMD_SCAN_H_

#include "server/cli/common.h"

namespace mk::cli {

void AddScan(CLI::App& app, Globals& globals, int* exit_code);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_CMD_SCAN_H_
