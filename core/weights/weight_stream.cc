#include "core/weights/weight_stream.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/weights/convert.h"
#include "core/weights/safetensors.h"
#include "core/weights/sha256.h"

namespace mk {
namespace {

constexpr size_t kChunkBytes = 4 << 20;

// Reads the file front to back, and hashes what it reads.
class HashingFile {
 public:
  HashingFile(int fd, const std::string& name) : fd_(fd), name_(name) {}

  absl::Status Read(char* out, uint64_t size) {
    uint64_t done = 0;
    while (done < size) {
      const ssize_t got = pread(fd_, out + done, size - done, static_cast<off_t>(at_ + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        return absl::DataLossError(absl::StrCat(
            "weights '", name_, "': ", got < 0 ? std::strerror(errno) : "the file ended early",
            " at byte ", at_ + done));
      }
      done += static_cast<uint64_t>(got);
    }
    hash_.Update(std::string_view(out, size));
    at_ += size;
    return absl::OkStatus();
  }
  std::string Digest() { return hash_.HexDigest(); }

 private:
  const int fd_;
  const std::string& name_;
  uint64_t at_ = 0;
  Sha256 hash_;
};

// Of the names that nobody asked for; one that was found is no misspelling of another.
std::string Hint(const std::string& name, const std::vector<std::string>& surplus) {
  const std::string nearest = Nearest(name, surplus);
  return nearest.empty() ? "" : absl::StrCat("; nearest name in the file: '", nearest, "'");
}

std::string FirstFive(const std::vector<std::string>& names) {
  const size_t shown = std::min<size_t>(names.size(), 5);
  return absl::StrCat(
      "'", absl::StrJoin(names.begin(), names.begin() + static_cast<long>(shown), "', '"), "'",
      names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "");
}

std::string Shape(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

using Plan = std::vector<std::pair<const StoredTensor*, mk_weight*>>;  // in the order of the data

absl::Status CheckMatch(const std::string& file, const StoredTensor& stored,
                        const mk_weight& weight) {
  const absl::Span<const int64_t> shape(weight.shape, weight.rank);
  if (absl::MakeConstSpan(stored.shape) != shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights '", file, "': tensor '", Printable(stored.name), "' has shape ",
                     Shape(stored.shape), ", expected ", Shape(shape)));
  }
  if (!Converts(stored.type, weight.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights '", file, "': tensor '", Printable(stored.name), "' of type ",
                     std::string(StoredTypeName(stored.type)), " does not convert to ",
                     std::string(DtypeName(weight.dtype))));
  }
  return absl::OkStatus();
}

// Pairs the file's tensors with the pack's; every difference is named.
absl::StatusOr<Plan> Match(const std::string& file, const SafetensorsHeader& header,
                           absl::Span<mk_weight> weights) {
  std::map<std::string_view, mk_weight*> wanted;
  for (mk_weight& weight : weights) {
    weight.found = 0;
    if (!wanted.emplace(weight.name, &weight).second) {
      return absl::InternalError(
          absl::StrCat("the pack asks for tensor '", weight.name, "' twice"));
    }
  }
  Plan plan;
  std::vector<std::string> surplus, missing;
  for (const StoredTensor& stored : header.tensors) {
    const auto found = wanted.find(stored.name);
    if (found == wanted.end()) {
      surplus.push_back(Printable(stored.name));
      continue;
    }
    plan.emplace_back(&stored, found->second);
    found->second->found = 1;
  }
  for (const mk_weight& weight : weights) {
    if (!weight.found && !(weight.flags & MK_WEIGHT_OPTIONAL)) missing.push_back(weight.name);
  }
  const std::string counts = absl::StrCat(plan.size(), " of ", weights.size(), " tensors loaded, ",
                                          surplus.size(), " extra");
  if (!missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("weights '", file, "': missing ",
                                                   FirstFive(missing), " (", counts, ")",
                                                   Hint(missing[0], surplus)));
  }
  if (!surplus.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights '", file, "': surplus ", FirstFive(surplus), " (", counts, ")"));
  }
  for (const auto& [stored, weight] : plan) MK_RETURN_IF_ERROR(CheckMatch(file, *stored, *weight));
  return plan;
}

struct Buffers {
  std::vector<char> chunk;      // as read
  std::vector<char> converted;  // on its way to `place`
};

absl::Status FillTensor(const WeightStreamOptions& options, HashingFile& file,
                        const StoredTensor& stored, mk_weight& weight, Buffers& buffers) {
  const bool placed = options.place && (weight.flags & MK_WEIGHT_HOST) == 0;
  std::vector<char>& chunk = buffers.chunk;
  const uint64_t element = static_cast<uint64_t>(StoredTypeBits(stored.type)) / 8;
  const uint64_t out_element = DtypeSize(weight.dtype);
  const uint64_t count = (stored.end - stored.begin) / element;
  char* out = static_cast<char*>(weight.data);
  for (uint64_t done = 0; done < count;) {
    const uint64_t now = std::min<uint64_t>(count - done, chunk.size() / element);
    MK_RETURN_IF_ERROR(file.Read(chunk.data(), now * element));
    char* const destination = out + done * out_element;
    if (placed) buffers.converted.resize(now * out_element);
    std::string value;
    const int64_t bad =
        ConvertElements(stored.type, weight.dtype, chunk.data(), static_cast<int64_t>(now),
                        placed ? buffers.converted.data() : destination, &value);
    if (bad >= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "weights '", options.file_name, "': tensor '", Printable(stored.name), "' has ", value,
          " at index ", done + static_cast<uint64_t>(bad), "; values must be finite and in range"));
    }
    if (placed) {
      MK_RETURN_IF_ERROR(options.place(destination, buffers.converted.data(), now * out_element));
    }
    done += now;
  }
  return absl::OkStatus();
}

// The header of the file, whose every message begins with the file's name.
absl::StatusOr<SafetensorsHeader> ReadHeader(HashingFile& file, const std::string& name,
                                             uint64_t file_size) {
  const auto named = [&name](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat("weights '", name, "': ", std::string(status.message())));
  };
  char first[8] = {};
  if (file_size >= sizeof first) MK_RETURN_IF_ERROR(file.Read(first, sizeof first));
  const auto header_size = ReadSafetensorsHeaderSize(std::string_view(first, 8), file_size);
  if (!header_size.ok()) return named(header_size.status());
  std::string json(*header_size, '\0');
  MK_RETURN_IF_ERROR(file.Read(json.data(), json.size()));
  auto header = ParseSafetensorsHeader(json, file_size);
  if (!header.ok()) return named(header.status());
  return header;
}

absl::StatusOr<uint64_t> FileSize(int fd, const std::string& name) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("weights '", name, "' is no plain file"));
  }
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace

absl::Status StreamWeights(int fd, const WeightStreamOptions& options,
                           absl::Span<mk_weight> weights) {
  const std::string& name = options.file_name;
  MK_ASSIGN_OR_RETURN(const uint64_t file_size, FileSize(fd, name));
  HashingFile file(fd, name);
  MK_ASSIGN_OR_RETURN(const SafetensorsHeader header, ReadHeader(file, name, file_size));
  MK_ASSIGN_OR_RETURN(const Plan plan, Match(name, header, weights));
  Buffers buffers;
  buffers.chunk.resize(std::min<uint64_t>(kChunkBytes, std::max<uint64_t>(file_size, 8)));
  for (const auto& [stored, weight] : plan) {
    MK_RETURN_IF_ERROR(FillTensor(options, file, *stored, *weight, buffers));
  }
  MK_ASSIGN_OR_RETURN(const uint64_t size_now, FileSize(fd, name));
  if (size_now != file_size) {
    return absl::DataLossError(absl::StrCat("weights '", name, "': the file changed its size from ",
                                            file_size, " to ", size_now,
                                            " bytes while being read"));
  }
  const std::string digest = file.Digest();
  if (!options.expected_sha256.empty() && digest != options.expected_sha256) {
    return absl::DataLossError(absl::StrCat("weights '", name, "': digest ", digest.substr(0, 8),
                                            "..., the manifest says ",
                                            options.expected_sha256.substr(0, 8), "..."));
  }
  return absl::OkStatus();
}

}  // namespace mk
