#include "verify/scan/report.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "core/base/text.h"
#include "verify/scan/tensor.h"

namespace mk::scan {
namespace {

// The part of a node's name that says which stage of the model it is in: the first two or three
// steps of "/encoder/layer.0/attention/MatMul". Names are used for this picture only.
std::string StageName(const Program& program, const Node& node) {
  std::string name = ScopeName(program, node);
  if (name.empty()) name = node.proto->name();
  size_t begin = 0;
  while (begin < name.size() && name[begin] == '/') ++begin;
  name = name.substr(begin);
  size_t end = 0;
  for (int steps = 0; steps < 3; ++steps) {
    const size_t next = name.find('/', end ? end + 1 : 0);
    if (next == name.npos) break;
    end = next;
  }
  return Printable(name.substr(0, end), 60);
}

std::string Plural(int64_t count, const char* word) {
  return absl::StrCat(count, " ", word, count == 1 ? "" : "s");
}

std::string Megabytes(uint64_t bytes) {
  return bytes < 1'000'000 ? absl::StrCat(bytes / 1000, " kB")
                           : absl::StrCat(bytes / 1'000'000, " MB");
}

void TextOfSpot(const Report& report, int spot, bool all, std::string* text) {
  const auto at = static_cast<size_t>(spot);
  if (report.counts[at] == 0) return;
  absl::StrAppend(text, "\n", SpotId(spot), "  ", SpotTitle(spot), ": ",
                  Plural(report.counts[at], "structure"), ", ",
                  Plural(report.site_counts[at], "site"), "\n");
  // Structures of one kind and note under one line.
  std::vector<std::pair<std::string, std::vector<const Structure*>>> kinds;
  for (const Structure& structure : report.structures[at]) {
    const std::string key =
        structure.kind + (structure.note.empty() ? "" : " (" + structure.note + ")");
    const auto same = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const auto& kind) { return kind.first == key; });
    if (same == kinds.end()) {
      kinds.push_back({key, {&structure}});
    } else {
      same->second.push_back(&structure);
    }
  }
  for (const auto& [key, list] : kinds) {
    absl::StrAppend(text, "    ", list.size() > 1 ? absl::StrCat(list.size(), " x ") : "", key,
                    "\n");
    size_t shown = 0, left = 0;
    for (const Structure* structure : list) {
      for (const Site& site : structure->sites) {
        if (!all && shown >= 3) {
          ++left;
          continue;
        }
        ++shown;
        absl::StrAppend(text, "        ", site.op, " ", site.name, "  ", site.shapes,
                        site.scope.empty() ? "" : "  in " + site.scope, "\n");
      }
    }
    if (left != 0)
      absl::StrAppend(text, "        and ", Plural(static_cast<int64_t>(left), "more site"),
                      " (--all)\n");
  }
}

}  // namespace

const char* AnswerText(Answer answer) {
  switch (answer) {
    case Answer::kLeaveAlone:
      return "leave alone";
    case Answer::kWatch:
      return "watch";
    case Answer::kCandidate:
      return "candidate";
    case Answer::kUnknown:
      return "unknown";
  }
  return "unknown";
}

Answer Judge(int blind_spots, bool hides) {
  if (blind_spots >= 2) return Answer::kCandidate;
  if (hides) return Answer::kUnknown;
  return blind_spots == 1 ? Answer::kWatch : Answer::kLeaveAlone;
}

int Report::BlindSpots() const {
  return static_cast<int>(
      std::count_if(counts.begin(), counts.end(), [](int64_t n) { return n != 0; }));
}

std::string TypeName(int32_t type) {
  static constexpr const char* kNames[] = {"undefined",  "float",   "uint8",  "int8",   "uint16",
                                           "int16",      "int32",   "int64",  "string", "bool",
                                           "float16",    "double",  "uint32", "uint64", "complex64",
                                           "complex128", "bfloat16"};
  return type >= 0 && type < 17 ? kNames[type] : absl::StrCat("type ", type);
}

std::vector<Stage> MakeStages(const Program& program, const Findings& findings, size_t limit) {
  std::map<NodeId, std::array<int64_t, kSpots>> sites;
  for (int spot = 0; spot < kSpots; ++spot) {
    for (const Structure& structure : findings.structures(spot)) {
      for (const Site& site : structure.sites) {
        if (site.node != kNone) ++sites[site.node][static_cast<size_t>(spot)];
      }
    }
  }
  std::vector<Stage> stages;
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    if (node.is_const) continue;
    const std::string name = StageName(program, node);
    if (stages.empty() || (!name.empty() && stages.back().name != name)) {
      if (!stages.empty() && stages.back().name.empty()) {
        stages.back().name = name;
      } else {
        stages.push_back({name, 0, {}});
      }
    }
    ++stages.back().nodes;
    if (const auto found = sites.find(static_cast<NodeId>(i)); found != sites.end()) {
      for (size_t spot = 0; spot < kSpots; ++spot) stages.back().sites[spot] += found->second[spot];
    }
  }
  // Too many for a picture: neighbours are merged, the smallest pairs first.
  while (stages.size() > limit) {
    std::vector<Stage> merged;
    const size_t step = (stages.size() + limit - 1) / limit;
    for (size_t i = 0; i < stages.size(); ++i) {
      if (i % step == 0) {
        merged.push_back(stages[i]);
        continue;
      }
      merged.back().nodes += stages[i].nodes;
      for (size_t spot = 0; spot < kSpots; ++spot)
        merged.back().sites[spot] += stages[i].sites[spot];
    }
    stages = std::move(merged);
  }
  return stages;
}

std::string Text(const Report& report, bool all) {
  std::string hit;
  for (int spot = 0; spot < kSpots; ++spot) {
    if (report.counts[static_cast<size_t>(spot)] != 0)
      hit += (hit.empty() ? "" : " ") + std::string(SpotId(spot));
  }
  std::string text =
      absl::StrCat(report.file, ": ", AnswerText(report.answer()), ", ", report.BlindSpots(),
                   " of 5 blind spots", hit.empty() ? "" : " (" + hit + ")", "\n");
  absl::StrAppend(&text, "    opset ", report.opset, ", ", Plural(report.nodes, "node"), ", ",
                  Plural(report.graphs, "graph"), ", ", Megabytes(report.tensor_bytes),
                  " of tensors inside and ", Megabytes(report.external_bytes), " outside",
                  report.producer.empty() ? "" : ", by " + report.producer, "\n");
  if (!report.origin.kind.empty()) {
    absl::StrAppend(&text, "    ", report.origin.kind, ", exported by ", report.origin.exporter,
                    report.origin.inputs.empty() ? "" : ", for " + report.origin.inputs, "\n");
    for (const std::string& note : report.origin.notes)
      absl::StrAppend(&text, "        ", note, "\n");
  }
  for (int spot = 0; spot < kSpots; ++spot) TextOfSpot(report, spot, all, &text);
  const auto list = [&](const char* title, const std::vector<Remark>& remarks, size_t most) {
    if (remarks.empty()) return;
    absl::StrAppend(&text, "\n", title, "\n");
    for (size_t i = 0; i < remarks.size(); ++i) {
      if (!all && i >= most) {
        absl::StrAppend(&text, "    and ", remarks.size() - i, " more (--all)\n");
        return;
      }
      absl::StrAppend(&text, "    ", remarks[i].node, remarks[i].node.empty() ? "" : ": ",
                      remarks[i].text, "\n");
    }
  };
  list("Hidden: these may hold any structure", report.hidden, 10);
  list("External data refused", report.problems, 10);
  list("Remarks", report.remarks, 5);
  if (!report.trt_version.empty()) {
    absl::StrAppend(&text, "\nTensorRT ", report.trt_version,
                    "'s ONNX parser, as documented (reported, not tried; ", report.trt_source,
                    ")\n");
    if (report.trt.empty())
      text += "    no operator of this model is listed as unsupported or restricted\n";
    for (size_t i = 0; i < report.trt.size(); ++i) {
      if (!all && i >= 20) {
        absl::StrAppend(&text, "    and ", report.trt.size() - i, " more (--all)\n");
        break;
      }
      absl::StrAppend(&text, "    ", report.trt[i].supported ? "restricted   " : "unsupported  ",
                      report.trt[i].op, " ", report.trt[i].node,
                      report.trt[i].text.empty() ? "" : ": ", report.trt[i].text, "\n");
    }
  }
  return text;
}

}  // namespace mk::scan
