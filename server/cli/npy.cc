#include "server/cli/npy.h"

#include <array>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace mk::cli {
namespace {

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

struct NpyType {
  std::string_view descr;
  std::string_view datatype;
};
constexpr std::array<NpyType, 12> kNpyTypes = {{{"|b1", "BOOL"},
                                                {"|u1", "UINT8"},
                                                {"<u2", "UINT16"},
                                                {"<u4", "UINT32"},
                                                {"<u8", "UINT64"},
                                                {"|i1", "INT8"},
                                                {"<i2", "INT16"},
                                                {"<i4", "INT32"},
                                                {"<i8", "INT64"},
                                                {"<f2", "FP16"},
                                                {"<f4", "FP32"},
                                                {"<f8", "FP64"}}};
constexpr std::string_view kMagic("\x93NUMPY", 6);

// The text between the first `open` behind "'key':" and the next `close`.
absl::StatusOr<std::string> Value(const std::string& header, const char* key, char open,
                                  char close) {
  const size_t at = header.find(absl::StrCat("'", key, "':"));
  const size_t begin = at == header.npos ? at : header.find(open, at + std::strlen(key) + 3);
  const size_t end = begin == header.npos ? begin : header.find(close, begin + 1);
  if (end == header.npos) return Wrong(".npy: its header lacks '", key, "'");
  return header.substr(begin + 1, end - begin - 1);
}

}  // namespace

bool IsNpy(std::string_view file) { return file.substr(0, kMagic.size()) == kMagic; }

absl::StatusOr<HostTensor> ParseNpy(std::string_view file) {
  if (file.size() < 10 || file.substr(0, 6) != kMagic) return Wrong(".npy: no such file format");
  const auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<uint8_t>(file[i])); };
  const uint64_t major = byte(6);
  const uint64_t prefix = major == 1 ? 10 : 12;
  if (major < 1 || major > 3 || file.size() < prefix)
    return Wrong(".npy: version ", major, " is unknown");
  uint64_t size = byte(8) | byte(9) << 8;
  if (major > 1) size |= byte(10) << 16 | byte(11) << 24;
  if (size > file.size() - prefix)
    return Wrong(".npy: a header of ", size, " bytes passes the file");
  const std::string header(file.substr(prefix, size));
  MK_ASSIGN_OR_RETURN(const std::string descr, Value(header, "descr", '\'', '\''));
  MK_ASSIGN_OR_RETURN(const std::string dims, Value(header, "shape", '(', ')'));
  if (header.find("'fortran_order': False") == header.npos) {
    return Wrong(".npy: Fortran order is not supported; save it with numpy.ascontiguousarray");
  }
  HostTensor tensor;
  for (const NpyType& type : kNpyTypes) {
    if (type.descr == descr) tensor.datatype = type.datatype;
  }
  if (tensor.datatype.empty())
    return Wrong(".npy: type '", TerminalText(descr, 40), "' is not supported");
  for (absl::string_view part : absl::StrSplit(dims, ',')) {
    part = absl::StripAsciiWhitespace(part);
    int64_t dim = 0;
    if (part.empty()) continue;
    if (!absl::SimpleAtoi(part, &dim) || dim < 0)
      return Wrong(".npy: its shape is no list of sizes");
    tensor.shape.push_back(dim);
  }
  const auto count = CheckedProduct(tensor.shape);
  if (!count)
    return Wrong(".npy: shape [", absl::StrJoin(tensor.shape, ","), "] is negative or too large");
  const auto bytes = CheckedMul(*count, DtypeSize(DtypeFromName(tensor.datatype)));
  if (!bytes || *bytes != file.size() - prefix - size) {
    return Wrong(".npy: ", file.size() - prefix - size, " bytes of data for shape [",
                 absl::StrJoin(tensor.shape, ","), "]");
  }
  tensor.data = std::string(file.substr(prefix + size));
  return tensor;
}

absl::StatusOr<std::string> WriteNpy(const HostTensor& tensor) {
  std::string_view descr;
  for (const NpyType& type : kNpyTypes) {
    if (type.datatype == tensor.datatype) descr = type.descr;
  }
  if (descr.empty()) return Wrong(tensor.datatype, " has no .npy form");
  std::string header =
      absl::StrCat("{'descr': '", std::string(descr), "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(tensor.shape, ", "), tensor.shape.size() == 1 ? "," : "", "), }");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file(kMagic);
  file += {'\x01', '\0', static_cast<char>(header.size() & 0xff),
           static_cast<char>(header.size() >> 8)};
  return file + header + tensor.data;
}

}  // namespace mk::cli
