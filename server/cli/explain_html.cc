// The page of mk explain: no script, no file beside it, legible in light and dark and on paper.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/html.h"
#include "server/cli/common.h"
#include "server/cli/explain_report.h"

namespace mk::cli {
namespace {

constexpr char kHead[] = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>mk explain</title><style>
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2128;--soft:#f2f4f7;--line:#d5dae1;--dim:#5c6773;--memory:#2f7fd1;--tensor:#2a9d63;--fp32:#e08e2b;--launch:#8a94a0;--area:#2f7fd133}
@media (prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e6eaef;--soft:#1e242b;--line:#333b45;--dim:#98a3af}}
body{margin:0 auto;max-width:76rem;padding:1.5rem;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:0}h2{font-size:1.2rem;margin:2.2rem 0 .4rem}h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{margin:.4rem 0}.dim{color:var(--dim)}.badge{display:inline-block;padding:.1rem .7rem;border-radius:1rem;background:#9a6700;color:#fff;font-weight:600}.true{background:#1a7f37}
svg{width:100%;height:auto;display:block;background:var(--soft);border-radius:.5rem}
svg text{font:11px system-ui,sans-serif;fill:var(--dim)}
.memory{fill:var(--memory)}.tensor{fill:var(--tensor)}.fp32{fill:var(--fp32)}.launch{fill:var(--launch)}
.measured{fill:var(--fg)}
.area{fill:var(--area);stroke:var(--memory);stroke-width:1.5}
.key span{margin-right:1.2rem}.key i{display:inline-block;width:.8rem;height:.8rem;border-radius:.2rem;margin-right:.35rem}
table{border-collapse:collapse;margin:.5rem 0}th,td{text-align:right;padding:.2rem .7rem;border-bottom:1px solid var(--line)}
th{color:var(--dim);font-size:.85rem}td:first-child,th:first-child{text-align:left;font-family:ui-monospace,monospace}
details{margin:.6rem 0}summary{cursor:pointer;font-weight:600}.wide{overflow-x:auto}
</style></head><body>
)";

constexpr double kWidth = 1200, kHeight = 220, kPad = 6;

// A bar per launch, as wide as the others: the run from left to right.
std::string Bars(const Explained& e) {
  double most = 1e-12;
  for (const ExplainedLaunch& l : e.launches) {
    most = std::max({most, l.prediction.seconds, l.measured_seconds});
  }
  const double step =
      (kWidth - 2 * kPad) / static_cast<double>(std::max<size_t>(1, e.launches.size()));
  std::string svg = absl::StrCat("<svg viewBox=\"0 0 ", kWidth, " ", kHeight + 24,
                                 "\" role=\"img\" aria-label=\"predicted time of each launch\">");
  for (size_t i = 0; i < e.launches.size(); ++i) {
    const ExplainedLaunch& l = e.launches[i];
    const double height = std::max(1.0, (kHeight - kPad) * l.prediction.seconds / most);
    absl::StrAppend(&svg, "<rect class=\"", l.prediction.bound, "\" x=\"",
                    Fixed(kPad + step * static_cast<double>(i), 2), "\" y=\"",
                    Fixed(kHeight - height, 2), "\" width=\"", Fixed(std::max(0.5, step * 0.86), 2),
                    "\" height=\"", Fixed(height, 2), "\"><title>", i + 1, ". ",
                    HtmlText(l.launch.kernel), ": ", Fixed(l.prediction.seconds * 1e6, 2),
                    " us predicted, bound by ", l.prediction.bound, ", ",
                    HumanBytes(l.launch.dims.work.bytes), "</title></rect>");
    if (l.measured_seconds <= 0) continue;
    const double top = kHeight - std::max(1.0, (kHeight - kPad) * l.measured_seconds / most);
    absl::StrAppend(&svg, "<rect class=\"measured\" x=\"",
                    Fixed(kPad + step * static_cast<double>(i), 2), "\" y=\"", Fixed(top, 2),
                    "\" width=\"", Fixed(std::max(0.5, step * 0.86), 2), "\" height=\"2\"><title>",
                    i + 1, ". ", HtmlText(l.launch.kernel), ": ",
                    Fixed(l.measured_seconds * 1e6, 2), " us measured</title></rect>");
  }
  return absl::StrCat(svg, "<text x=\"", kPad, "\" y=\"", kHeight + 16,
                      "\">launch 1</text><text x=\"", kWidth - kPad, "\" y=\"", kHeight + 16,
                      "\" text-anchor=\"end\">launch ", e.launches.size(), "</text><text x=\"",
                      kPad, "\" y=\"14\">", Fixed(most * 1e6, 2), " us</text></svg>\n");
}

// Scratch alive at each launch, above the weights that are always there.
std::string MemoryArea(const Explained& e) {
  uint64_t most = std::max<uint64_t>(1, e.plan.scratch_peak_bytes());
  const double step =
      (kWidth - 2 * kPad) / static_cast<double>(std::max<size_t>(1, e.launches.size()));
  const auto y = [&](uint64_t bytes) {
    return Fixed(kHeight - (kHeight - 20) * static_cast<double>(bytes) / static_cast<double>(most),
                 2);
  };
  std::string points = absl::StrCat(kPad, ",", kHeight);
  for (size_t i = 0; i < e.launches.size(); ++i) {
    const double x = kPad + step * static_cast<double>(i);
    const uint64_t bytes = std::min(most, e.launches[i].launch.live_bytes);
    absl::StrAppend(&points, " ", Fixed(x, 2), ",", y(bytes), " ", Fixed(x + step, 2), ",",
                    y(bytes));
  }
  return absl::StrCat("<svg viewBox=\"0 0 ", kWidth, " ", kHeight + 4,
                      "\" role=\"img\" aria-label=\"scratch over the course of the run\">",
                      "<polygon class=\"area\" points=\"", points, " ", kWidth - kPad, ",", kHeight,
                      "\"/><text x=\"", kPad, "\" y=\"14\">peak ", HumanBytes(most),
                      " of scratch, beside ", HumanBytes(e.plan.weights_bytes()),
                      " of weights</text></svg>\n");
}

std::string Launches(const Explained& e) {
  std::string html =
      "<details><summary>Every launch</summary><div class=\"wide\"><table><tr>"
      "<th>kernel</th><th>blocks</th><th>threads</th><th>per SM</th><th>waves</th>"
      "<th>bytes</th><th>MFLOP</th><th>bound</th><th>us, predicted</th>";
  const bool measured = !e.plan.measured_on().empty();
  html += measured ? "<th>us, measured</th><th>of the roof</th></tr>\n" : "</tr>\n";
  for (const ExplainedLaunch& l : e.launches) {
    const LaunchDims& d = l.launch.dims;
    const Prediction& p = l.prediction;
    absl::StrAppend(&html, "<tr><td>", HtmlText(l.launch.kernel), "</td><td>", p.blocks,
                    "</td><td>", uint64_t{d.block[0]} * d.block[1] * d.block[2], "</td><td>",
                    p.known ? std::to_string(p.occupancy.blocks_per_sm) : "?", "</td><td>",
                    p.known ? Fixed(p.waves, 2) : "?", "</td><td>", HumanBytes(d.work.bytes),
                    "</td><td>");
    absl::StrAppend(&html, Fixed(static_cast<double>(d.work.flops + d.work.tensor_flops) / 1e6, 2),
                    "</td><td>", p.bound, "</td><td>", Fixed(p.seconds * 1e6, 2), "</td>");
    if (measured) {
      absl::StrAppend(&html, "<td>", Fixed(l.measured_seconds * 1e6, 2), "</td><td>",
                      Fixed(100 * l.Share(), 0), " %</td>");
    }
    html += "</tr>\n";
  }
  return html + "</table></div></details>\n";
}

std::string Measured(const Explained& e) {
  if (e.plan.measured_on().empty()) return "";
  return absl::StrCat("<p>", HumanDuration(e.plan.measured_seconds()),
                      " <span class=\"badge true\">measured</span> on ",
                      HtmlText(e.plan.measured_on()), ": median of ", e.plan.measured_runs(),
                      " runs, copies in and out included; the best ",
                      HumanDuration(e.plan.measured_best_seconds()), "; the launches one by one ",
                      HumanDuration(e.measured_seconds), ". Lines in the chart: measured.</p>\n");
}

std::string OneBoard(const Explained& e) {
  return absl::StrCat(
      "<h2>", HtmlText(e.board->title), ": ", HumanDuration(e.seconds),
      " <span class=\"badge\">predicted</span></h2>\n", Measured(e), "<p>", e.launches.size(),
      " launches; ", HumanDuration(e.memory_seconds), " bound by memory, ",
      HumanDuration(e.tensor_seconds), " by tensor cores, ", HumanDuration(e.fp32_seconds),
      " by fp32; each launch taken as ", Fixed(e.launch_seconds * 1e6, 2),
      " us beside its work (assumed).</p>\n", Bars(e),
      "<h3>Memory over the course of the run</h3>\n", MemoryArea(e), Launches(e),
      "<p class=\"dim\">Rates: ", Fixed(e.board->dram.per_second / 1e9, 1), " GB/s (",
      RateBasisName(e.board->dram.basis), "), ", Fixed(e.board->tensor.per_second / 1e12, 1),
      " TFLOPS on tensor cores (", RateBasisName(e.board->tensor.basis), "), ", e.board->sm_count,
      " SMs. ", HtmlText(e.board->source), "</p>\n");
}

}  // namespace

std::string ExplainHtml(const std::vector<Explained>& boards) {
  std::string html = kHead;
  const bool measured = !boards.empty() && !boards[0].plan.measured_on().empty();
  absl::StrAppend(&html, "<h1>", boards.empty() ? "" : HtmlText(boards[0].pack),
                  "</h1>\n<p>What one run launches, and how long each launch should take by the "
                  "roofline. ",
                  measured ? "What is called measured was." : "Nothing here was measured.",
                  "</p>\n<p class=\"key\">");
  for (const char* bound : {"memory", "tensor", "fp32", "launch"}) {
    absl::StrAppend(&html, "<span><i style=\"background:var(--", bound, ")\"></i>bound by ", bound,
                    "</span>");
  }
  html += "</p>\n";
  for (const Explained& e : boards) html += OneBoard(e);
  return html + "</body></html>\n";
}

}  // namespace mk::cli
