// How `mk` ends: the exit codes that scripts rely on (docs/mk.md), and the words for an error.
#ifndef MERGEKERNEL_SERVER_CLI_EXIT_CODE_H_
#define MERGEKERNEL_SERVER_CLI_EXIT_CODE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace mk::cli {

// Numbers are a promise: scripts branch on them.
enum ExitCode : int {
  kExitOk = 0,
  kExitNo = 1,           // the question was answered, and the answer is no
  kExitUsage = 2,        // wrong arguments, or a local file that cannot be used
  kExitUnreachable = 3,  // nothing answers at the address
  kExitRefused = 4,      // the daemon refused: asking again the same way will not help
  kExitTryAgain = 5,     // not now: overloaded, not ready, out of time
  kExitBroken = 6,       // the daemon or the pack is at fault
};

// Of an answer of the daemon. A connection that never stood is kExitUnreachable, which only the
// caller can know.
ExitCode ExitCodeOf(absl::StatusCode code);

// "NOT_FOUND", as gRPC spells it.
std::string CodeName(absl::StatusCode code);

// One sentence on what to do about `status`, or "" where there is nothing useful to say.
std::string HintFor(const absl::Status& status);
std::string UnreachableHint(std::string_view address);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_EXIT_CODE_H_
