// mk explain: needs no daemon and no GPU.
#ifndef MERGEKERNEL_SERVER_CLI_CMD_EXPLAIN_H_
#define MERGEKERNEL_SERVER_CLI_CMD_EXPLAIN_H_

#include "server/cli/common.h"

namespace mk::cli {

void AddExplain(CLI::App& app, Globals& globals, int* exit_code);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_CMD_EXPLAIN_H_
