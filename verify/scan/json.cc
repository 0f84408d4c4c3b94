#include <nlohmann/json.hpp>

#include "verify/scan/report.h"

namespace mk::scan {
namespace {

using nlohmann::ordered_json;

ordered_json OfRemarks(const std::vector<Remark>& remarks) {
  ordered_json out = ordered_json::array();
  for (const Remark& remark : remarks)
    out.push_back({{"code", remark.code}, {"node", remark.node}, {"text", remark.text}});
  return out;
}

ordered_json OfTensors(const std::vector<Tensor>& tensors) {
  ordered_json out = ordered_json::array();
  for (const Tensor& tensor : tensors)
    out.push_back({{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.shape}});
  return out;
}

ordered_json OfSpot(const Report& report, int spot) {
  const auto at = static_cast<size_t>(spot);
  ordered_json structures = ordered_json::array();
  for (const Structure& structure : report.structures[at]) {
    ordered_json sites = ordered_json::array();
    for (const Site& site : structure.sites) {
      sites.push_back(
          {{"node", site.name}, {"op", site.op}, {"scope", site.scope}, {"shapes", site.shapes}});
    }
    structures.push_back({{"kind", structure.kind},
                          {"note", structure.note},
                          {"site_count", structure.site_count},
                          {"sites", sites}});
  }
  return {{"id", SpotId(spot)},
          {"title", SpotTitle(spot)},
          {"structure_count", report.counts[at]},
          {"site_count", report.site_counts[at]},
          {"structures", structures}};
}

ordered_json OfReport(const Report& report) {
  ordered_json spots = ordered_json::array(), stages = ordered_json::array();
  for (int spot = 0; spot < kSpots; ++spot) spots.push_back(OfSpot(report, spot));
  for (const Stage& stage : report.stages)
    stages.push_back({{"name", stage.name}, {"nodes", stage.nodes}, {"sites", stage.sites}});
  ordered_json out = {{"file", report.file},
                      {"answer", AnswerText(report.answer())},
                      {"blind_spots", report.BlindSpots()},
                      {"opset", report.opset},
                      {"ir_version", report.ir_version},
                      {"producer", report.producer},
                      {"nodes", report.nodes},
                      {"graphs", report.graphs},
                      {"functions", report.functions},
                      {"file_bytes", report.file_bytes},
                      {"tensor_bytes", report.tensor_bytes},
                      {"external_bytes", report.external_bytes},
                      {"inputs", OfTensors(report.inputs)},
                      {"outputs", OfTensors(report.outputs)},
                      {"spots", spots},
                      {"hidden_count", report.hidden_count},
                      {"hidden", OfRemarks(report.hidden)},
                      {"external_problems", OfRemarks(report.problems)},
                      {"remarks", OfRemarks(report.remarks)},
                      {"stages", stages}};
  if (!report.origin.kind.empty()) {
    out["origin"] = {{"kind", report.origin.kind},
                     {"exporter", report.origin.exporter},
                     {"inputs", report.origin.inputs},
                     {"notes", report.origin.notes}};
  }
  if (!report.trt_version.empty()) {
    ordered_json rows = ordered_json::array();
    for (const TrtRow& row : report.trt) {
      rows.push_back({{"op", row.op},
                      {"node", row.node},
                      {"state", row.supported ? "restricted" : "unsupported"},
                      {"text", row.text}});
    }
    out["trt"] = {{"version", report.trt_version},
                  {"basis", "reported"},
                  {"source", report.trt_source},
                  {"rows", rows}};
  }
  return out;
}

}  // namespace

std::string Json(const std::vector<Report>& reports) {
  ordered_json out = ordered_json::array();
  for (const Report& report : reports) out.push_back(OfReport(report));
  // Names come from the file and may be no UTF-8.
  return (reports.size() == 1 ? out[0] : out)
             .dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace mk::scan
