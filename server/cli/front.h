// The Python front of mk scan: what is no ONNX file becomes one (verify/front).
#ifndef MERGEKERNEL_SERVER_CLI_FRONT_H_
#define MERGEKERNEL_SERVER_CLI_FRONT_H_

#include <string>
#include <vector>

#include "server/cli/common.h"
#include "verify/scan/report.h"

namespace mk::cli {

struct FrontOptions {
  std::string python = "python3";  // has PyTorch, onnx, onnxscript; transformers for a config
  std::string keep;                // folder for the ONNX file; "": a temporary one
  std::string exporter = "auto";   // auto, new, old
  std::vector<std::string> shapes;
  int layers = 0;  // 0: as the config says
  double seconds = 900, memory_gib = 0;
};

// A folder that is removed, with all in it, when this ends.
class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  // False with errno set where none can be made, below TMPDIR or /tmp.
  bool Make();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What the front answered. Exported: `onnx` names the file. Else `message` says at which stage it
// ended and why.
struct FrontAnswer {
  std::string onnx;
  scan::Origin origin;
  std::vector<scan::Remark> hidden;  // what the export itself hides
  std::string message, hint;
  ExitCode code = kOk;  // kNo: understood, not exported; kUsage: the file, the flags, or Python
};

// Whether `path` is for the front: X.pt2, X.json, or a folder. Looks at the file system.
bool NeedsFront(const std::string& path);

// The answer in the text that the front printed; anything else ends in a message. Pure.
FrontAnswer ParseFrontAnswer(const std::string& text, const std::string& python);

// Exports `source` into `folder` in a child process, and waits for it. An interrupt from the
// keyboard ends the child, not this process. The front is the one of the checkout that this program
// stands in, never one of the current folder, where a stranger's model may lie.
FrontAnswer ExportByFront(const std::string& source, const std::string& folder,
                          const FrontOptions& options);

}  // namespace mk::cli

#endif  // MERGEKERNEL_SERVER_CLI_FRONT_H_
