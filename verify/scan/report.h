// The scan of one model as a person or a program wants it, and the rule's answer.
#ifndef MERGEKERNEL_VERIFY_SCAN_REPORT_H_
#define MERGEKERNEL_VERIFY_SCAN_REPORT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "verify/scan/findings.h"

namespace mk::scan {

// The selection rule's answer.
enum class Answer { kLeaveAlone, kWatch, kCandidate, kUnknown };
const char* AnswerText(Answer answer);  // "leave alone", "watch", "candidate", "unknown"

// Pure: two or more blind spots make a candidate, whatever is hidden; with fewer, anything hidden
// makes it unknown.
Answer Judge(int blind_spots, bool hides);

struct Tensor {
  std::string name, type, shape;
};

// A part of the graph in its order, for the picture.
struct Stage {
  std::string name;
  int64_t nodes = 0;
  std::array<int64_t, kSpots> sites = {};
};

struct TrtRow {
  std::string op, node, text;
  bool supported = true;  // restricted
};

// Where the graph came from, where the model was no ONNX file and was exported first.
struct Origin {
  std::string kind;      // "torch.export program", ...; "" for an ONNX file
  std::string exporter;  // and its version
  std::string inputs;    // that it was exported for
  std::vector<std::string> notes;
};

struct Report {
  std::string file;
  Origin origin;
  uint64_t file_bytes = 0, tensor_bytes = 0, external_bytes = 0;
  std::string producer;
  int64_t ir_version = 0, opset = 0;
  int64_t nodes = 0;   // in the program, constants not counted
  int64_t graphs = 0;  // bodies and branches included
  int64_t functions = 0;
  std::vector<Tensor> inputs, outputs;
  std::array<std::vector<Structure>, kSpots> structures;
  std::array<int64_t, kSpots> counts = {}, site_counts = {};
  std::vector<Remark> remarks, hidden, problems;  // problems: external data that is refused
  int64_t hidden_count = 0;
  std::vector<Stage> stages;
  std::string trt_version, trt_source;  // "" where not asked for
  std::vector<TrtRow> trt;

  int BlindSpots() const;
  Answer answer() const { return Judge(BlindSpots(), hidden_count != 0); }
};

// The stages of a program: runs of nodes whose names begin alike, at most `limit` of them.
std::vector<Stage> MakeStages(const Program& program, const Findings& findings, size_t limit);

std::string TypeName(int32_t type);

// For a terminal. `all` lists every site that was kept, else the first few of each kind.
std::string Text(const Report& report, bool all);
// For scripts; docs/scan.md describes the fields.
std::string Json(const std::vector<Report>& reports);
// One self-contained page.
std::string Html(const std::vector<Report>& reports);

}  // namespace mk::scan

#endif  // MERGEKERNEL_VERIFY_SCAN_REPORT_H_
