#include "verify/scan/scan.h"

#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "verify/scan/external.h"
#include "verify/scan/trt.h"

namespace mk::scan {
namespace {

uint64_t TensorBytes(const onnx::TensorProto& tensor) {
  return tensor.skipped_bytes() + tensor.raw_data().size() +
         4 * static_cast<uint64_t>(tensor.float_data_size()) +
         8 * static_cast<uint64_t>(tensor.int64_data_size());
}

std::vector<Tensor> Tensors(const Program& program, const std::vector<ValueId>& ids) {
  std::vector<Tensor> out;
  for (const ValueId id : ids) {
    out.push_back({Printable(program.value(id).name), TypeName(program.value(id).type),
                   ShapeText(program, id)});
  }
  return out;
}

Report MakeReport(const onnx::ModelProto& model, const Program& program, const Findings& findings) {
  Report report;
  report.producer =
      Printable(model.producer_name() + (model.producer_version().empty() ? "" : " ") +
                model.producer_version());
  report.ir_version = model.ir_version();
  report.opset = program.opset;
  report.graphs = static_cast<int64_t>(program.scopes.size());
  report.functions = model.functions_size();
  for (const Node& node : program.nodes) report.nodes += !node.is_const;
  for (const auto& tensor : model.graph().initializer()) report.tensor_bytes += TensorBytes(tensor);
  report.inputs = Tensors(program, program.inputs);
  report.outputs = Tensors(program, program.outputs);
  for (int spot = 0; spot < kSpots; ++spot) {
    const auto at = static_cast<size_t>(spot);
    report.structures[at] = findings.structures(spot);
    report.counts[at] = findings.count(spot);
    report.site_counts[at] = findings.site_count(spot);
  }
  report.remarks = findings.remarks();
  for (const Warning& warning : program.warnings)
    report.remarks.push_back({warning.code, warning.node, warning.text});
  report.hidden = findings.hidden();
  report.hidden_count = findings.hidden_count();
  report.stages = MakeStages(program, findings, 120);
  return report;
}

}  // namespace

absl::StatusOr<Report> ScanBytes(google::protobuf::io::ZeroCopyInputStream* bytes,
                                 const ScanOptions& options, onnx::ModelProto* model) {
  onnx::ModelProto own;
  if (model == nullptr) model = &own;
  MK_RETURN_IF_ERROR(ReadModel(bytes, options.read, options.progress, model));
  Program program;
  MK_RETURN_IF_ERROR(Lower(*model, options.lower, &program));
  Findings findings(program);
  FindDataDependent(program, &findings);
  FindNonAffine(program, &findings);
  FindSpecial(program, &findings);
  FindAttention(program, &findings);
  FindState(program, &findings);
  FindRemarks(program, &findings);
  Report report = MakeReport(*model, program, findings);
  if (!options.trt_version.empty()) ListTrt(program, options.trt_version, &report);
  return report;
}

absl::StatusOr<Report> ScanFile(const std::string& path, const ScanOptions& options) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const std::string why = absl::StrCat(Printable(path), ": ", std::strerror(errno));
    return errno == EACCES ? absl::PermissionDeniedError(why) : absl::NotFoundError(why);
  }
  google::protobuf::io::FileInputStream stream(fd, 64 << 10);
  stream.SetCloseOnDelete(true);
  struct stat facts = {};
  if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(Printable(path), ": not a regular file"));
  if (facts.st_size > INT32_MAX)
    return absl::InvalidArgumentError(absl::StrCat(
        Printable(path), ": ", facts.st_size, " bytes > ", INT32_MAX,
        ", the most that one protobuf message can have; keep the weights as external data"));
  onnx::ModelProto model;
  auto report = ScanBytes(&stream, options, &model);
  if (!report.ok())
    return absl::Status(report.status().code(),
                        absl::StrCat(Printable(path), ": ", report.status().message()));
  report->file = path;
  report->file_bytes = static_cast<uint64_t>(facts.st_size);
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  JudgeExternal(model, folder, &report->external_bytes, &report->problems);
  return report;
}

}  // namespace mk::scan
