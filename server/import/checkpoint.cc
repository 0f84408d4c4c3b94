#include "server/import/checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace mk {
namespace {

constexpr char kResave[] =
    "convert it where PyTorch is: python3 -c \"import torch; "
    "torch.save(torch.load('OLD.pth', map_location='cpu', weights_only=True), 'NEW.pth')\"";

bool Begins(std::string_view bytes, std::string_view with) {
  return bytes.substr(0, with.size()) == with;
}

absl::Status Is(const char* what, std::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat("the file is ", what, "; ", std::string(remedy)));
}

}  // namespace

absl::StatusOr<CheckpointKind> SniffCheckpoint(std::string_view bytes, uint64_t file_size) {
  using std::string_view_literals::operator""sv;
  if (bytes.empty()) return Is("empty", "was its download cut off?");
  if (Begins(bytes, "PK\3\4")) return CheckpointKind::kTorchZip;
  if (Begins(bytes, "PK\5\6")) return Is("an empty zip archive", "it holds no tensor");
  // A pickle's PROTO opcode; the old format begins with a pickled magic number of ten bytes.
  if (bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 1 && bytes[1] <= 5) {
    return Is(bytes.find("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv) < 16
                  ? "a checkpoint of PyTorch before 1.6 (not a zip archive)"
                  : "a bare pickle, which can hold any program",
              kResave);
  }
  if (bytes.size() >= 262 && bytes.substr(257, 5) == "ustar") {
    return Is("a tar archive (PyTorch before 0.2 wrote such)", kResave);
  }
  if (Begins(bytes, "\x1f\x8b") ||
      Begins(bytes,
             "\xfd"
             "7zXZ") ||
      Begins(bytes, "BZh") || Begins(bytes, "\x28\xb5\x2f\xfd")) {
    return Is("compressed", "unpack it first");
  }
  if (Begins(bytes, "version https://git-lfs")) {
    return Is("a Git LFS pointer, not the checkpoint", "fetch it with: git lfs pull");
  }
  if (Begins(bytes, "<!") || Begins(bytes, "<html") || Begins(bytes, "<HTML")) {
    return Is("a web page", "the download went wrong");
  }
  if (Begins(bytes, "\x89HDF")) return Is("an HDF5 file", "VMamba is published for PyTorch");
  if (file_size >= 9 && bytes.size() >= 9 && bytes[8] == '{') return CheckpointKind::kSafetensors;
  return Is("neither safetensors nor a zip archive of PyTorch",
            absl::StrCat("it begins with '", Printable(bytes.substr(0, 16)), "'"));
}

namespace {

class SafetensorsFile : public CheckpointStream {
 public:
  SafetensorsFile(Fd fd, uint64_t file_size) : fd_(std::move(fd)), file_size_(file_size) {}

  absl::Status ReadHeader() {
    MK_ASSIGN_OR_RETURN(
        header_, ReadStreamedHeader([this](char* out, uint64_t size) { return Read(out, size); },
                                    file_size_));
    return absl::OkStatus();
  }

  absl::Status Read(char* out, uint64_t size) override {
    while (size > 0) {
      const ssize_t got = pread(fd_.get(), out, size, static_cast<off_t>(at_));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        return absl::DataLossError(absl::StrCat(
            got < 0 ? std::strerror(errno) : "the file ended early", " at byte ", at_));
      }
      out += got;
      size -= static_cast<uint64_t>(got);
      at_ += static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    struct stat info = {};
    if (fstat(fd_.get(), &info) == 0 && static_cast<uint64_t>(info.st_size) == file_size_) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat("the file changed its size from ", file_size_, " to ",
                                            info.st_size, " bytes while being read"));
  }

 private:
  const Fd fd_;
  const uint64_t file_size_;
  uint64_t at_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointStream>> OpenSafetensors(Fd fd, uint64_t file_size) {
  auto file = std::make_unique<SafetensorsFile>(std::move(fd), file_size);
  MK_RETURN_IF_ERROR(file->ReadHeader());
  return std::unique_ptr<CheckpointStream>(std::move(file));
}

}  // namespace mk
