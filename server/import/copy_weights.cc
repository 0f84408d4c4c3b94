#include "server/import/copy_weights.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/import/finite.h"
#include "server/import/hash_thread.h"

namespace mk {
namespace {

// The length word and the JSON, padded with blanks to a multiple of 8.
std::string HeaderText(const SafetensorsHeader& stored, const std::vector<CopiedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata, uint64_t* data_bytes) {
  nlohmann::json header = nlohmann::json::object();
  header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].skipped) continue;
    const StoredTensor& from = stored.tensors[i];
    const uint64_t size = from.end - from.begin;
    header[tensors[i].name] = {{"dtype", std::string(StoredTypeName(from.type))},
                               {"shape", tensors[i].shape},
                               {"data_offsets", {at, at + size}}};
    at += size;
  }
  *data_bytes = at;
  std::string json = header.dump();
  json.append((8 - json.size() % 8) % 8, ' ');
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return text + json;
}

// One pass over the stream.
class Copy {
 public:
  Copy(CheckpointStream& stream, int fd, const CopyHooks& hooks)
      : stream_(stream), fd_(fd), hooks_(hooks) {}

  // `text` goes out as it is.
  absl::Status Write(std::string_view text) {
    while (!text.empty()) {
      const size_t now = std::min(text.size(), HashThread::kBufferBytes);
      std::memcpy(hash_.Acquire(), text.data(), now);
      hash_.Submit(now);
      MK_RETURN_IF_ERROR(WriteAll(fd_, text.substr(0, now)));
      file_.size_bytes += now;
      text.remove_prefix(now);
    }
    return absl::OkStatus();
  }

  absl::Status Tensor(const StoredTensor& stored, const CopiedTensor& tensor) {
    const uint64_t size = stored.end - stored.begin;
    const auto element = static_cast<uint64_t>(std::max(1, StoredTypeBits(stored.type) / 8));
    bool all_zero = true, sound = true;
    for (uint64_t done = 0; done < size;) {
      if (hooks_.stop && hooks_.stop())
        return absl::CancelledError("stopped; nothing was installed");
      const uint64_t now = std::min<uint64_t>(size - done, HashThread::kBufferBytes);
      char* buffer = hash_.Acquire();
      MK_RETURN_IF_ERROR(stream_.Read(buffer, now));
      if (!tensor.skipped && sound) {
        sound = Judge(stored, tensor, buffer, done / element, now / element, &all_zero);
      }
      if (!tensor.skipped && problems_.empty()) {
        hash_.Submit(now);
        MK_RETURN_IF_ERROR(WriteAll(fd_, std::string_view(buffer, now)));
      } else {
        hash_.Submit(0);
      }
      done += now;
      if (hooks_.progress) hooks_.progress(read_ += now, total_);
    }
    if (tensor.skipped) return absl::OkStatus();
    file_.size_bytes += size;
    file_.parameters += size / element;
    if (all_zero && size != 0 && tensor.shape.size() >= 2) file_.all_zero.push_back(tensor.name);
    return problems_.size() > kMaxNamedTensors ? Verdict() : absl::OkStatus();
  }

  absl::Status Verdict() const {
    if (problems_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(problems_.size(), problems_.size() == 1 ? " tensor is" : " tensors are",
                     " not finite; values must be finite in fp32:\n  ", ListProblems(problems_)));
  }

  CopiedFile Done() {
    file_.sha256 = hash_.HexDigest();
    return std::move(file_);
  }
  void set_total(uint64_t total) { total_ = total; }

 private:
  bool Judge(const StoredTensor& stored, const CopiedTensor& tensor, const char* data,
             uint64_t first, uint64_t count, bool* all_zero) {
    std::string value;
    const int64_t bad =
        FirstNotFinite(stored.type, data, static_cast<int64_t>(count), &value, all_zero);
    if (bad < 0) return true;
    problems_.push_back(absl::StrCat("tensor '", tensor.name, "' has ", value, " at index ",
                                     first + static_cast<uint64_t>(bad)));
    return false;
  }

  CheckpointStream& stream_;
  const int fd_;
  const CopyHooks& hooks_;
  HashThread hash_;
  CopiedFile file_;
  std::vector<std::string> problems_;
  uint64_t read_ = 0;
  uint64_t total_ = 0;
};

absl::Status CheckTypes(const SafetensorsHeader& header, const std::vector<CopiedTensor>& tensors) {
  std::vector<std::string> problems;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const StoredTensor& stored = header.tensors[i];
    if (tensors[i].skipped || IsFloatingPoint(stored.type)) continue;
    problems.push_back(absl::StrCat("tensor '", Printable(stored.name), "' is of type ",
                                    std::string(StoredTypeName(stored.type))));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("weights must be F32, F16, BF16 or F64:\n  ", ListProblems(problems)));
}

}  // namespace

std::string ListProblems(const std::vector<std::string>& problems) {
  std::string text;
  const size_t shown = std::min(problems.size(), kMaxNamedTensors);
  for (size_t i = 0; i < shown; ++i) text += (i ? "\n  " : "") + problems[i];
  if (shown < problems.size()) {
    text += absl::StrCat("\n  ... and ", problems.size() - shown, " more");
  }
  return text;
}

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      const int error = errno;
      const std::string message = absl::StrCat("writing: ", std::strerror(error));
      return error == ENOSPC || error == EDQUOT || error == EFBIG
                 ? absl::ResourceExhaustedError(message)
                 : absl::InternalError(message);
    }
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return absl::OkStatus();
}

absl::StatusOr<CopiedFile> CopyWeights(CheckpointStream& stream,
                                       const std::vector<CopiedTensor>& tensors,
                                       const std::map<std::string, std::string>& metadata, int fd,
                                       const CopyHooks& hooks) {
  const SafetensorsHeader& header = stream.header();
  MK_RETURN_IF_ERROR(CheckTypes(header, tensors));
  uint64_t data_bytes = 0;
  const std::string text = HeaderText(header, tensors, metadata, &data_bytes);
  // Takes the room at once where the file system can: a full disk is known before the work.
  if (fallocate(fd, 0, 0, static_cast<off_t>(text.size() + data_bytes)) != 0 && errno == ENOSPC) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the file system has no room for ", text.size() + data_bytes, " bytes of weights"));
  }
  Copy copy(stream, fd, hooks);
  copy.set_total(header.tensors.empty() ? 0 : header.tensors.back().end);
  MK_RETURN_IF_ERROR(copy.Write(text));
  for (size_t i = 0; i < tensors.size(); ++i) {
    MK_RETURN_IF_ERROR(copy.Tensor(header.tensors[i], tensors[i]));
  }
  MK_RETURN_IF_ERROR(copy.Verdict());
  MK_RETURN_IF_ERROR(stream.Finish());
  return copy.Done();
}

}  // namespace mk
