#include "server/cli/exit_code.h"

namespace mk::cli {

ExitCode ExitCodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
      return kExitRefused;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
      return kExitTryAgain;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return kExitBroken;
    default:  // absl asks users of its enum to have one; a code of the future is nobody's promise
      return kExitBroken;
  }
}

std::string CodeName(absl::StatusCode code) {
  const std::string name = absl::StatusCodeToString(code);
  return name.empty() ? "CODE_" + std::to_string(static_cast<int>(code)) : name;
}

std::string HintFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return "`mk packs` lists what the repository holds";
    case absl::StatusCode::kInvalidArgument:
      return "`mk packs` shows why a pack was refused; `mk infer PACK --describe` shows what a pack "
             "takes";
    case absl::StatusCode::kUnavailable:
      return "the daemon is overloaded, stopping or still loading: see `mk status` and `mk packs`, "
             "then try again";
    case absl::StatusCode::kDeadlineExceeded:
      return "raise --timeout, or see the queue and run times in the metrics";
    case absl::StatusCode::kPermissionDenied:
      return "load and unload are open to the loopback and the Unix socket only: run mk on the "
             "daemon's machine";
    case absl::StatusCode::kResourceExhausted:
      return "a limit of the daemon was passed; the message names it, the daemon's --help tells how "
             "to set it";
    case absl::StatusCode::kUnimplemented:
      return "this daemon does not know the call: compare its version in `mk status` with `mk "
             "--version`";
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return "the daemon's log has more";
    default:
      return "";
  }
}

std::string UnreachableHint(std::string_view address) {
  return "is mergekerneld running, and at " + std::string(address) +
         "? Another address: --address HOST:PORT, unix:PATH, or MK_ADDRESS in the environment";
}

}  // namespace mk::cli
