// mk scan: which of the five blind spots ONNX models hit, and so whether they are worth kernels of
// their own. Local; needs no daemon.
#include "server/cli/cmd_scan.h"

#include <sys/stat.h>

#include <fstream>
#include <iostream>

#include "verify/scan/scan.h"

namespace mk::cli {
namespace {

constexpr char kMore[] =
    "  S1 data-dependent shape or control flow    S4 non-standard attention topology\n"
    "  S2 non-affine memory access                S5 recurrent state or variable length\n"
    "  S3 complex or special operators (rotary embedding, Fourier)\n"
    "\n"
    "Two or more: a candidate for kernels of its own. One: watch. None: leave it to the official "
    "path.\n"
    "unknown: an operator of a foreign domain hides what is there.\n"
    "\n"
    "  mk scan model.onnx                      what was found, and where\n"
    "  mk scan *.onnx                          a table\n"
    "  mk scan a.onnx b.onnx --together        parts of one model, and the answer for all of it\n"
    "  mk scan model.onnx --html scan.html     a page to look at\n"
    "  mk scan model.onnx --trt 10.3           also what this TensorRT's parser documents as "
    "unsupported\n"
    "  mk scan model.onnx --json               for scripts\n"
    "\n"
    "Weights are not read, and external data is judged by its header. Exit code 0: scanned, "
    "whatever the\n"
    "answer; 1: external data is missing or refused; 2: a file cannot be read or is no ONNX model.";

struct Options {
  std::vector<std::string> models;
  std::string html, trt;
  bool all = false, together = false;
};

// The files as parts of one model: what any of them hits, the model hits.
scan::Report Together(const std::vector<scan::Report>& reports) {
  scan::Report sum;
  sum.file = "(together)";
  for (const scan::Report& report : reports) {
    for (size_t spot = 0; spot < scan::kSpots; ++spot) {
      sum.counts[spot] += report.counts[spot];
      sum.site_counts[spot] += report.site_counts[spot];
    }
    sum.nodes += report.nodes;
    sum.hidden_count += report.hidden_count;
  }
  return sum;
}

std::string Overview(std::vector<scan::Report> reports, bool together) {
  if (together) reports.push_back(Together(reports));
  Table table({"MODEL", "ANSWER", "S1", "S2", "S3", "S4", "S5", "HIDDEN", "NODES"});
  for (const scan::Report& report : reports) {
    std::vector<std::string> row = {report.file, scan::AnswerText(report.answer())};
    for (const int64_t count : report.counts) row.push_back(count ? std::to_string(count) : "");
    row.push_back(report.hidden_count ? std::to_string(report.hidden_count) : "");
    row.push_back(std::to_string(report.nodes));
    table.Row(std::move(row));
  }
  return table.Text() +
         "Numbers are structures, not nodes; one model alone, or --all, shows where.\n";
}

absl::StatusOr<scan::Report> ScanOne(const std::string& path, const Options& options) {
  struct stat facts = {};
  const uint64_t size = stat(path.c_str(), &facts) == 0 ? static_cast<uint64_t>(facts.st_size) : 0;
  Progress progress("scanning " + path, size);
  scan::ScanOptions how;
  how.trt_version = options.trt;
  how.progress = [&](int64_t bytes) { progress.Set(static_cast<uint64_t>(bytes)); };
  return scan::ScanFile(path, how);
}

int Run(const Globals& globals, const Options& options) {
  std::vector<scan::Report> reports;
  int code = kOk;
  for (const std::string& path : options.models) {
    auto report = ScanOne(path, options);
    if (!report.ok()) {
      code = ReportUsage(globals, std::string(report.status().message()));
      continue;
    }
    for (const scan::Remark& problem : report->problems) {
      std::cerr << "mk: " << path << ": external data of '" << problem.node
                << "' refused: " << problem.text << "\n";
      if (code == kOk) code = kNo;
    }
    reports.push_back(*std::move(report));
  }
  if (reports.empty()) return code;
  if (!options.html.empty()) {
    std::ofstream page(options.html, std::ios::binary);
    page << scan::Html(reports);
    if (!page.flush()) return ReportUsage(globals, "cannot write " + options.html);
    std::cerr << "wrote " << options.html << "\n";
  }
  if (globals.json) {
    if (options.together) reports.push_back(Together(reports));
    std::cout << scan::Json(reports);
  } else if (options.models.size() > 1) {
    if (options.all) {
      for (const scan::Report& report : reports) std::cout << scan::Text(report, true) << "\n";
    }
    std::cout << Overview(reports, options.together);
  } else {
    std::cout << scan::Text(reports[0], options.all);
  }
  return code;
}

}  // namespace

void AddScan(CLI::App& app, Globals& globals, int* exit_code) {
  auto options = std::make_shared<Options>();
  auto* command =
      app.add_subcommand("scan", "Which of the five blind spots does an ONNX model hit?");
  command->footer(kMore);
  command->add_option("MODEL", options->models, "ONNX files; several give a table")->required();
  command->add_option("--html", options->html, "Also write one self-contained page");
  command
      ->add_option(
          "--trt", options->trt,
          "Also list what the ONNX parser of this TensorRT documents as unsupported or restricted")
      ->check(CLI::IsMember({"8.6", "10.3", "10.13", "10.16"}));
  command->add_flag("--together", options->together,
                    "The files are parts of one model: also answer for their union");
  command->add_flag("--all", options->all, "List every site and remark");
  command->callback([&globals, options, exit_code] { *exit_code = Run(globals, *options); });
}

}  // namespace mk::cli
