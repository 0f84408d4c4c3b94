// One page for people who look before they read: no script, no file beside it, legible in light and
// dark and on paper.
#include "core/base/html.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "verify/scan/report.h"

namespace mk::scan {
namespace {

constexpr const char* kColours[kSpots] = {"#d1495b", "#e08e2b", "#8e5bd0", "#2f7fd1", "#2a9d63"};

constexpr char kHead[] = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>mk scan</title><style>
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2128;--soft:#f2f4f7;--line:#d5dae1;--dim:#5c6773;--plain:#c3cad3}
@media (prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e6eaef;--soft:#1e242b;--line:#333b45;--dim:#98a3af;--plain:#4a545f}}
body{margin:0 auto;max-width:72rem;padding:1.5rem;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:0}h2{font-size:1.25rem;margin:2.5rem 0 .5rem;overflow-wrap:anywhere}h3{font-size:1rem;margin:1.5rem 0 .5rem}
p{margin:.4rem 0}.dim{color:var(--dim)}code,td.m{font:13px/1.45 ui-monospace,monospace;overflow-wrap:anywhere}
.badge{display:inline-block;padding:.15rem .7rem;border-radius:1rem;color:#fff;font-weight:600}
.candidate{background:#b3261e}.watch{background:#9a6700}.leave{background:#1a7f37}.unknown{background:#57606a}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:.75rem;margin:1rem 0}
.tile{background:var(--soft);border-radius:.5rem;padding:.7rem .9rem;border-top:.3rem solid var(--line)}
.tile b{font-size:1.6rem;display:block;line-height:1.2}.tile.off{opacity:.55}
.flow{display:flex;flex-wrap:wrap;gap:3px;margin:.5rem 0}
.stage{height:3.2rem;border-radius:3px;background:var(--plain);display:flex;flex-direction:column;overflow:hidden}
.stage i{flex:1;display:block}
table{border-collapse:collapse;width:100%;margin:.5rem 0}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;color:var(--dim);font-size:.85rem}details{margin:.5rem 0;background:var(--soft);border-radius:.5rem;padding:.5rem .9rem}
summary{cursor:pointer;font-weight:600}.dot{display:inline-block;width:.8rem;height:.8rem;border-radius:.2rem;margin-right:.4rem}
.wide{overflow-x:auto}@media print{details{break-inside:avoid}}
</style></head><body>
)";

std::string Badge(Answer answer) {
  const char* const style = answer == Answer::kCandidate    ? "candidate"
                            : answer == Answer::kWatch      ? "watch"
                            : answer == Answer::kLeaveAlone ? "leave"
                                                            : "unknown";
  return absl::StrCat("<span class=\"badge ", style, "\">", AnswerText(answer), "</span>");
}

const char* Meaning(Answer answer) {
  switch (answer) {
    case Answer::kCandidate:
      return "Two or more blind spots: a candidate for kernels of its own.";
    case Answer::kWatch:
      return "One blind spot: worth watching, not worth a pack by itself.";
    case Answer::kLeaveAlone:
      return "No blind spot: leave it to the official path.";
    case Answer::kUnknown:
      return "Operators of a foreign domain hide what is there; fewer than two blind spots were "
             "found in the rest.";
  }
  return "";
}

void Tiles(const Report& report, std::string* page) {
  *page += "<div class=\"tiles\">";
  for (int spot = 0; spot < kSpots; ++spot) {
    const auto at = static_cast<size_t>(spot);
    absl::StrAppend(page, "<div class=\"tile", report.counts[at] ? "" : " off",
                    "\" style=\"border-color:", report.counts[at] ? kColours[at] : "var(--line)",
                    "\">", SpotId(spot), "<b>", report.counts[at], "</b>", SpotTitle(spot),
                    "<div class=\"dim\">", report.site_counts[at], " sites</div></div>");
  }
  *page += "</div>";
}

// The stages in the order of the graph, wider for more nodes, with a stripe for each blind spot in
// them.
void Flow(const Report& report, std::string* page) {
  if (report.stages.empty()) return;
  *page +=
      "<h3>The graph, from inputs to outputs</h3><div class=\"flow\" role=\"img\" "
      "aria-label=\"stages coloured by blind spot\">";
  for (const Stage& stage : report.stages) {
    const double width = std::clamp(6 * std::sqrt(static_cast<double>(stage.nodes)), 8.0, 120.0);
    std::string title = HtmlText(stage.name.empty() ? "(no name)" : stage.name) + ": " +
                        std::to_string(stage.nodes) + " nodes";
    std::string stripes;
    for (size_t spot = 0; spot < kSpots; ++spot) {
      if (!stage.sites[spot]) continue;
      stripes += absl::StrCat("<i style=\"background:", kColours[spot], "\"></i>");
      title += absl::StrCat(", ", SpotId(static_cast<int>(spot)), " x ", stage.sites[spot]);
    }
    absl::StrAppend(page, "<div class=\"stage\" style=\"width:", static_cast<int>(width),
                    "px\" title=\"", title, "\">", stripes, "</div>");
  }
  *page += "</div><p class=\"dim\">";
  for (int spot = 0; spot < kSpots; ++spot)
    absl::StrAppend(page, "<span class=\"dot\" style=\"background:", kColours[spot], "\"></span>",
                    SpotId(spot), " &nbsp; ");
  *page +=
      "grey: none. A box is a stage by its name in the file; rest the pointer on it to read the "
      "name.</p>";
}

void Sites(const Report& report, std::string* page) {
  for (int spot = 0; spot < kSpots; ++spot) {
    const auto at = static_cast<size_t>(spot);
    if (report.counts[at] == 0) continue;
    absl::StrAppend(page,
                    "<details open><summary><span class=\"dot\" style=\"background:", kColours[at],
                    "\"></span>", SpotId(spot), " ", SpotTitle(spot), ": ", report.counts[at],
                    "</summary><div "
                    "class=\"wide\"><table><tr><th>structure</th><th>operator</th><th>node</"
                    "th><th>shapes</th></tr>");
    size_t rows = 0;
    for (const Structure& structure : report.structures[at]) {
      for (size_t i = 0; i < structure.sites.size() && rows < 300; ++i, ++rows) {
        const Site& site = structure.sites[i];
        const std::string kind =
            i ? ""
              : HtmlText(structure.kind) +
                    (structure.note.empty()
                         ? ""
                         : "<div class=\"dim\">" + HtmlText(structure.note) + "</div>");
        absl::StrAppend(
            page, "<tr><td>", kind, "</td><td class=\"m\">", HtmlText(site.op),
            "</td><td class=\"m\">", HtmlText(site.name),
            site.scope.empty() ? "" : "<div class=\"dim\">in " + HtmlText(site.scope) + "</div>",
            "</td><td class=\"m\">", HtmlText(site.shapes), "</td></tr>");
      }
    }
    *page += "</table></div>";
    if (rows >= 300) *page += "<p class=\"dim\">The first 300 are shown; --json has more.</p>";
    *page += "</details>";
  }
}

void Remarks(const char* title, const std::vector<Remark>& remarks, std::string* page) {
  if (remarks.empty()) return;
  absl::StrAppend(page, "<details><summary>", title, ": ", remarks.size(), "</summary><table>");
  for (const Remark& remark : remarks)
    absl::StrAppend(page, "<tr><td class=\"m\">", HtmlText(remark.node), "</td><td>",
                    HtmlText(remark.text), "</td></tr>");
  *page += "</table></details>";
}

void Trt(const Report& report, std::string* page) {
  if (report.trt_version.empty()) return;
  absl::StrAppend(page, "<details><summary>TensorRT ", HtmlText(report.trt_version),
                  "'s ONNX parser: ", report.trt.size(),
                  " nodes</summary><p class=\"dim\">Reported: read from documents, not tried, and "
                  "no verdict. Source: ",
                  HtmlText(report.trt_source), ".</p><table>");
  for (const TrtRow& row : report.trt)
    absl::StrAppend(page, "<tr><td>", row.supported ? "restricted" : "unsupported",
                    "</td><td class=\"m\">", HtmlText(row.op), "</td><td class=\"m\">",
                    HtmlText(row.node), "</td><td>", HtmlText(row.text), "</td></tr>");
  *page += "</table></details>";
}

void Ports(const char* title, const std::vector<Tensor>& tensors, std::string* page) {
  absl::StrAppend(page, "<p>", title, ": ");
  for (size_t i = 0; i < tensors.size() && i < 20; ++i)
    absl::StrAppend(page, i ? ", " : "", "<code>", HtmlText(tensors[i].name), " ",
                    HtmlText(tensors[i].type), " ", HtmlText(tensors[i].shape), "</code>");
  if (tensors.size() > 20) absl::StrAppend(page, " and ", tensors.size() - 20, " more");
  *page += "</p>";
}

void One(const Report& report, size_t index, std::string* page) {
  absl::StrAppend(page, "<section id=\"m", index, "\"><h2>", HtmlText(report.file), "</h2><p>",
                  Badge(report.answer()), " ", Meaning(report.answer()), "</p>");
  if (!report.origin.kind.empty()) {
    absl::StrAppend(page, "<p class=\"dim\">", HtmlText(report.origin.kind), ", exported by ",
                    HtmlText(report.origin.exporter));
    if (!report.origin.inputs.empty())
      absl::StrAppend(page, ", for ", HtmlText(report.origin.inputs));
    for (const std::string& note : report.origin.notes)
      absl::StrAppend(page, "<br>", HtmlText(note));
    *page += "</p>";
  }
  Tiles(report, page);
  Flow(report, page);
  Sites(report, page);
  Remarks("Hidden: these may hold any structure", report.hidden, page);
  Remarks("External data refused", report.problems, page);
  Trt(report, page);
  Remarks("Remarks", report.remarks, page);
  *page += "<details><summary>The file</summary>";
  absl::StrAppend(page, "<p>opset ", report.opset, ", IR ", report.ir_version, ", ", report.nodes,
                  " nodes in ", report.graphs, " graphs, ", report.functions, " functions; ",
                  report.tensor_bytes / 1000, " kB of tensors inside, ",
                  report.external_bytes / 1000, " kB outside. ", HtmlText(report.producer), "</p>");
  Ports("Inputs", report.inputs, page);
  Ports("Outputs", report.outputs, page);
  *page += "</details></section>";
}

}  // namespace

std::string Html(const std::vector<Report>& reports) {
  std::string page = kHead;
  page +=
      "<h1>mk scan</h1><p class=\"dim\">Which of five blind spots a model hits. Numbers count "
      "structures found in the graph, by rules "
      "of structure and not by names; nothing was run.</p>";
  if (reports.size() > 1) {
    page += "<div class=\"wide\"><table><tr><th>model</th><th>answer</th>";
    for (int spot = 0; spot < kSpots; ++spot)
      absl::StrAppend(&page, "<th title=\"", SpotTitle(spot), "\">", SpotId(spot), "</th>");
    page += "<th>hidden</th><th>nodes</th></tr>";
    for (size_t i = 0; i < reports.size(); ++i) {
      absl::StrAppend(&page, "<tr><td class=\"m\"><a href=\"#m", i, "\">",
                      HtmlText(reports[i].file), "</a></td><td>", Badge(reports[i].answer()),
                      "</td>");
      for (size_t spot = 0; spot < kSpots; ++spot) {
        const int64_t count = reports[i].counts[spot];
        absl::StrAppend(&page, "<td>",
                        count ? absl::StrCat("<span class=\"dot\" style=\"background:",
                                             kColours[spot], "\"></span>", count)
                              : "",
                        "</td>");
      }
      absl::StrAppend(&page, "<td>",
                      reports[i].hidden_count ? absl::StrCat(reports[i].hidden_count) : "",
                      "</td><td>", reports[i].nodes, "</td></tr>");
    }
    page += "</table></div>";
  }
  for (size_t i = 0; i < reports.size(); ++i) One(reports[i], i, &page);
  return page + "</body></html>\n";
}

}  // namespace mk::scan
