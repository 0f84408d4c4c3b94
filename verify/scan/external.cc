#include "verify/scan/external.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/checked.h"
#include "core/base/text.h"
#include "verify/scan/tensor.h"

namespace mk::scan {
namespace {

struct Fault {
  const char* code = nullptr;  // null: none
  std::string text;
};

struct File {
  Fault fault;
  uint64_t size = 0;
};

// Bits of one element; 0 where the type has no fixed size.
uint64_t ElementBits(int32_t type) {
  switch (type) {
    case 2:
    case 3:
    case 9:
    case 17:
    case 18:
    case 19:
    case 20:
    case 24:
      return 8;
    case 4:
    case 5:
    case 10:
    case 16:
      return 16;
    case 1:
    case 6:
    case 12:
      return 32;
    case 7:
    case 11:
    case 13:
    case 14:
      return 64;
    case 15:
      return 128;
    case 21:
    case 22:
    case 23:
      return 4;
    default:
      return 0;
  }
}

// The names on the way to `location`, or a fault.
Fault SplitPath(const std::string& location, std::vector<std::string>* parts) {
  const std::string shown = Printable(location);
  if (location.empty()) return {"external-path", "its location is empty"};
  if (location[0] == '/')
    return {"external-path", absl::StrCat("location '", shown, "' is absolute")};
  if (location.find('\0') != location.npos || location.find('\\') != location.npos)
    return {"external-path",
            absl::StrCat("location '", shown, "' has a character that no path here may have")};
  for (size_t begin = 0; begin <= location.size();) {
    size_t end = location.find('/', begin);
    if (end == location.npos) end = location.size();
    const std::string part = location.substr(begin, end - begin);
    begin = end + 1;
    if (part == "..")
      return {"external-path", absl::StrCat("location '", shown, "' leaves the model's folder")};
    if (!part.empty() && part != ".") parts->push_back(part);
  }
  if (parts->empty() || parts->size() > 32)
    return {"external-path", absl::StrCat("location '", shown, "' names no file")};
  return {};
}

// Walks down from the folder's descriptor, never through a link; O_PATH opens no contents.
File Look(int folder, const std::string& location) {
  File file;
  std::vector<std::string> parts;
  file.fault = SplitPath(location, &parts);
  if (file.fault.code) return file;
  const std::string shown = Printable(location);
  int at = dup(folder);
  for (size_t i = 0; i < parts.size() && at >= 0; ++i) {
    const int next = openat(at, parts[i].c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    close(at);
    at = next;
    struct stat facts = {};
    if (at < 0 || fstat(at, &facts) != 0) break;
    const bool is_last = i + 1 == parts.size();
    if (S_ISLNK(facts.st_mode)) {
      file.fault = {"external-link", absl::StrCat("'", shown, "' is or passes a symbolic link")};
    } else if (is_last && !S_ISREG(facts.st_mode)) {
      file.fault = {"external-path", absl::StrCat("'", shown, "' is no regular file")};
    } else if (is_last && facts.st_nlink > 1) {
      file.fault = {"external-link",
                    absl::StrCat("'", shown, "' is a hard link: it has another name elsewhere")};
    } else if (!is_last && !S_ISDIR(facts.st_mode)) {
      file.fault = {"external-missing", absl::StrCat("'", shown, "' is not there")};
    }
    if (file.fault.code) break;
    file.size = static_cast<uint64_t>(facts.st_size);
  }
  if (at < 0) {
    file.fault = {"external-missing", absl::StrCat("'", shown, "' is not there")};
  } else {
    close(at);
  }
  return file;
}

class Judge {
 public:
  Judge(int folder, uint64_t* bytes, std::vector<Remark>* problems)
      : folder_(folder), bytes_(*bytes), problems_(*problems) {}

  void Graph(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) Tensor(tensor);
    for (const auto& sparse : graph.sparse_initializer()) {
      Tensor(sparse.values());
      Tensor(sparse.indices());
    }
    for (const auto& node : graph.node()) Node(node);
  }
  void Node(const onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_t()) Tensor(attribute.t());
      for (const auto& tensor : attribute.tensors()) Tensor(tensor);
      if (attribute.has_g()) Graph(attribute.g());
      for (const auto& graph : attribute.graphs()) Graph(graph);
    }
  }

 private:
  void Tensor(const onnx::TensorProto& tensor) {
    if (tensor.data_location() != 1) return;
    const Fault fault = Check(tensor);
    if (fault.code && problems_.size() < 200)
      problems_.push_back({fault.code, Printable(tensor.name()), fault.text});
  }

  Fault Check(const onnx::TensorProto& tensor) {
    std::string location;
    std::optional<int64_t> offset, length;
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") location = entry.value();
      if (entry.key() != "offset" && entry.key() != "length") continue;
      int64_t number;
      if (!absl::SimpleAtoi(entry.value(), &number) || number < 0)
        return {"external-range", absl::StrCat(entry.key(), " '", Printable(entry.value(), 40),
                                               "' is no number from 0 to 2^63 - 1")};
      (entry.key() == "offset" ? offset : length) = number;
    }
    const auto [found, is_new] = files_.try_emplace(location);
    if (is_new) found->second = folder_ < 0 ? File{} : Look(folder_, location);
    const File& file = found->second;
    if (file.fault.code) return file.fault;
    const auto from = static_cast<uint64_t>(offset.value_or(0));
    const auto size =
        length ? static_cast<uint64_t>(*length) : file.size - std::min(from, file.size);
    const auto end = CheckedAdd(from, size);
    if (!end || *end > file.size)
      return {"external-range", absl::StrCat("offset ", from, " + length ", size, " > ", file.size,
                                             ", the size of '", Printable(location), "'")};
    const uint64_t bits = ElementBits(tensor.data_type());
    const auto count = CheckedProduct(tensor.dims());
    const auto all_bits = count ? CheckedMul(*count, bits) : std::nullopt;
    if (!all_bits) return {"external-size", "its shape is not one that a tensor can have"};
    if (bits != 0 && (*all_bits + 7) / 8 != size)
      return {"external-size", absl::StrCat("length ", size, " != ", (*all_bits + 7) / 8,
                                            ", what its type and shape ask for")};
    bytes_ += size;
    return {};
  }

  const int folder_;
  uint64_t& bytes_;
  std::vector<Remark>& problems_;
  std::map<std::string, File> files_;
};

}  // namespace

void JudgeExternal(const onnx::ModelProto& model, const std::string& folder, uint64_t* bytes,
                   std::vector<Remark>* problems) {
  const int at = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  Judge judge(at, bytes, problems);
  judge.Graph(model.graph());
  for (const auto& function : model.functions()) {
    for (const auto& node : function.node()) judge.Node(node);
  }
  if (at >= 0) close(at);
}

}  // namespace mk::scan
